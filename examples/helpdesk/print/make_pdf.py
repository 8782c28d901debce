# /// script
# requires-python = ">=3.12"
# dependencies = ["fpdf2==2.8.9"]
# ///
"""Makes the guides that exist as PDF only: `manual/LANGUAGE/*.pdf` from `print/LANGUAGE/*.md`.

Run by hand after an edit, in an environment with the package named above: `python print/make_pdf.py FONT.ttf`. The font
must know Japanese, such as IPAexGothic (Debian: fonts-ipaexfont-gothic); only the glyphs in use are embedded.
"""

import re
import sys
from datetime import UTC, datetime
from pathlib import Path

from fpdf import FPDF  # type: ignore[import-not-found,import-untyped,unused-ignore] # only needed here

_HERE = Path(__file__).resolve().parent
_PAGE_MARK = re.compile(r"^<!-- page \d+ -->$", re.MULTILINE)
_SIZES = {"#": 20, "##": 15, "###": 12}
_BODY = 10.5
# Fixed, so that an unchanged guide gives the same bytes.
_PRINTED = datetime(2026, 11, 1, tzinfo=UTC)


def print_guide(source: Path, target: Path, font: Path) -> None:
    pdf = FPDF(format="A4")
    pdf.set_creation_date(_PRINTED)
    pdf.set_lang(source.parent.name)
    pdf.set_margins(22, 20)
    # Pages break where the source says, because citations name them.
    pdf.set_auto_page_break(False)
    pdf.add_font("guide", fname=font)
    pages = [page.strip() for page in _PAGE_MARK.split(source.read_text(encoding="utf-8")) if page.strip()]
    for page in pages:
        pdf.add_page()
        for block in page.split("\n\n"):
            _print_block(pdf, block)
        if pdf.get_y() > pdf.h - 20:
            raise SystemExit(f"{source.name}: page {pdf.page_no()} is too long for the paper.")
    pdf.output(str(target))


def _print_block(pdf: FPDF, block: str) -> None:
    mark, _, heading = block.partition(" ")
    if mark not in _SIZES:
        _print_text(pdf, block, _BODY)
        return
    pdf.ln(2)
    if mark == "#":
        pdf.set_title(heading)
    else:
        pdf.start_section(heading, level=len(mark) - 2)
    _print_text(pdf, heading, _SIZES[mark])


def _print_text(pdf: FPDF, text: str, size: float) -> None:
    pdf.set_font("guide", size=size)
    pdf.multi_cell(0, size * 0.55, text, align="L", new_x="LMARGIN", new_y="NEXT")
    pdf.ln(size * 0.2)


if __name__ == "__main__":
    if len(sys.argv) != 2:  # noqa: PLR2004 - the program and the font
        raise SystemExit("usage: python print/make_pdf.py FONT.ttf")
    for guide in sorted(_HERE.glob("*/*.md")):
        made = _HERE.parent / "manual" / guide.parent.name / f"{guide.stem}.pdf"
        print_guide(guide, made, Path(sys.argv[1]))
        print(made.relative_to(_HERE.parent))  # noqa: T201 - a command line program prints

import re
import shutil
from contextlib import closing
from pathlib import Path
from sqlite3 import Connection

import pytest
from helpdesk_search.errors import ManualError
from helpdesk_search.index import index_of_manual
from helpdesk_search.manual import fingerprint, read_manual
from helpdesk_search.pdf import page_as_markdown, read_pdf
from helpdesk_search.search import find
from helpdesk_search.terms import parse_terms
from pypdf import PdfReader, PdfWriter
from pypdf.generic import DictionaryObject, NameObject, NumberObject

GUIDE = "desktop-sync-guide"


def unbroken(text: str) -> str:
    return re.sub(r"\s", "", text)


@pytest.mark.parametrize("language", ["en", "ja"])
def test_the_printed_guide_is_read_as_it_was_written(helpdesk: Path, language: str) -> None:
    written = (helpdesk / "print" / language / f"{GUIDE}.md").read_text(encoding="utf-8")
    pages = [page for page in re.split(r"<!-- page \d -->", written) if page.strip()]
    printed = read_pdf(helpdesk / "manual" / language / f"{GUIDE}.pdf", "guide")
    assert [unbroken(page) for page in printed.pages] == [unbroken(page) for page in pages]
    assert pages[0].strip().startswith(f"# {printed.title}\n")
    # Only the bookmarks distinguish headings from text.
    headings = [line for page in pages for line in page.splitlines() if line.startswith("#")]
    assert [line for page in printed.pages for line in page.splitlines() if line.startswith("#")] == headings


@pytest.mark.parametrize(
    ("typed", "language", "page", "heading"),
    [
        ('"sync paused" reasons', "all", 3, "When sync has stopped"),
        ("Fumikura rescued", "en", 4, "Repairing and removing the app"),
        ("AUTOUPDATE", "en", 1, "Installing the desktop app › Installing it for many people"),
        ("赤いバツ 200文字", "ja", 3, "同期が止まったとき › 赤いバツが付いたファイル"),
        ("勤務時間", "ja", 2, "ファイルに付く印の意味 › 通信量"),
    ],
)
def test_a_pdf_is_found_with_page_and_heading(
    manual_index: Connection, typed: str, language: str, page: int, heading: str
) -> None:
    best = find(manual_index, parse_terms(typed), language)[0]
    assert best.file.endswith(f"{GUIDE}.pdf")
    assert (best.page, best.heading) == (page, heading)


def test_lines_become_paragraphs_and_headings() -> None:
    lines = ["A title", "One sentence that", "goes on.", "", "A title", "and more", "Next", "設定 >", "端末は10", "台"]
    assert page_as_markdown(lines, [(1, "Ａ  title"), (3, "Next"), (2, "Not here")]) == (
        "# A title\n\nOne sentence that goes on.\n\nA title and more\n\n### Next\n\n設定 > 端末は10台"
    )


def test_a_printed_edition_of_a_markdown_file_is_left_out(helpdesk: Path, tmp_path: Path) -> None:
    manual = shutil.copytree(helpdesk / "manual", tmp_path / "manual")
    before = fingerprint(manual), read_manual(manual)
    shutil.copy(manual / "en" / f"{GUIDE}.pdf", manual / "en" / "user-guide.pdf")
    assert (fingerprint(manual), read_manual(manual)) == before
    with closing(index_of_manual(manual, tmp_path).open()) as index:
        hits = find(index, parse_terms("AUTOUPDATE"), "en")
    assert [hit.file for hit in hits] == [f"en/{GUIDE}.pdf"]


def test_no_passage_is_in_the_index_twice(manual_index: Connection) -> None:
    texts = [text for (text,) in manual_index.execute("SELECT text FROM folded")]
    assert len(set(texts)) == len(texts) > 100


def test_a_manual_may_have_only_pdfs(helpdesk: Path, tmp_path: Path) -> None:
    (tmp_path / "en").mkdir()
    shutil.copy(helpdesk / "manual" / "en" / f"{GUIDE}.pdf", tmp_path / "en")
    (document,) = read_manual(tmp_path)
    assert (document.file, document.title) == (f"en/{GUIDE}.pdf", "Fumikura Desktop Sync guide")
    assert [page.number for page in document.pages] == [1, 2, 3, 4]


@pytest.mark.parametrize("length", [0, 8, 3000, 12_000, 19_000])
@pytest.mark.filterwarnings("ignore")  # the library may warn of the damage
def test_a_damaged_pdf_is_named(helpdesk: Path, tmp_path: Path, length: int) -> None:
    whole = (helpdesk / "manual" / "en" / f"{GUIDE}.pdf").read_bytes()
    (tmp_path / "cut.pdf").write_bytes(whole[:length])
    with pytest.raises(ManualError, match=r"en/cut\.pdf: this PDF (cannot be read|contains no text)"):
        read_pdf(tmp_path / "cut.pdf", "en/cut.pdf")


def test_a_scan_and_a_protected_pdf_are_named(helpdesk: Path, tmp_path: Path) -> None:
    scan = PdfWriter()
    scan.add_blank_page(200, 200)
    scan.write(tmp_path / "scan.pdf")
    with pytest.raises(ManualError, match="contains no text; a scanned one needs text recognition"):
        read_pdf(tmp_path / "scan.pdf", "scan.pdf")
    protected = PdfWriter(clone_from=PdfReader(helpdesk / "manual" / "en" / f"{GUIDE}.pdf"))
    protected.encrypt("secret", algorithm="RC4-128")
    protected.write(tmp_path / "protected.pdf")
    with pytest.raises(ManualError, match="may be damaged or protected"):
        read_pdf(tmp_path / "protected.pdf", "protected.pdf")


def test_a_pdf_with_an_unavailable_cipher_is_named(helpdesk: Path, tmp_path: Path) -> None:
    """Reading it needs no password, but a cipher that the library has only with `cryptography`."""
    protected = PdfWriter(clone_from=PdfReader(helpdesk / "manual" / "en" / f"{GUIDE}.pdf"))
    protected.encrypt("", "secret", algorithm="RC4-128")
    assert protected._encrypt_entry is not None
    aes = DictionaryObject({NameObject("/CFM"): NameObject("/AESV2")})
    protected._encrypt_entry.update(
        {
            NameObject("/V"): NumberObject(4),
            NameObject("/R"): NumberObject(4),
            NameObject("/CF"): DictionaryObject({NameObject("/StdCF"): aes}),
            NameObject("/StmF"): NameObject("/StdCF"),
            NameObject("/StrF"): NameObject("/StdCF"),
        }
    )
    protected.write(tmp_path / "aes.pdf")
    with pytest.raises(ManualError, match=r"aes\.pdf: this PDF cannot be read .*may be damaged or protected"):
        read_pdf(tmp_path / "aes.pdf", "aes.pdf")

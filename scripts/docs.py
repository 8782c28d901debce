#!/usr/bin/env python3
"""Writes the files that are generated from strategies/source/declarations.yaml.

The generated files are strategies/*.yaml and the table in docs/parameters.md. The table first has the parameters of all
strategies, then the parameters of single strategies. `make docs` calls this script first. If the source has mistakes,
the script prints a sentence about each and writes nothing.
"""

import re
import sys
from pathlib import Path

from scripts.declarations import ROOT, Parameter, Source, SourceError, files, read

PAGE = "docs/parameters.md"
BEGIN = "<!-- parameters: written by `make docs`, do not edit -->"
END = "<!-- /parameters -->"
MAX_LINE = 100
"""Maximum characters of a line of prose. Tables and code may be wider."""


def reference(source: Source) -> str:
    """Return a table of the parameters of all strategies, and one for each strategy with further parameters."""
    headings = {None: "All strategies"} | {each.name: f"Only `{each.name}`" for each in source.strategies}
    tables = []
    for only, heading in headings.items():
        rows = [_row(parameter) for parameter in source.parameters if parameter.only == only]
        if rows:
            tables.append("\n".join([f"## {heading}\n\n| Parameter | Set it |\n|---|---|", *rows]))
    return "\n\n".join(tables)


def _row(parameter: Parameter) -> str:
    """Return the row of a parameter: its name with a link to its page, when to set it, and its default with the range.

    The help up to its colon says when to set it.
    """
    first, *others = re.split(r"(?<=\.) (?=[A-Z])", parameter.help["en_US"])
    if len(first.split()) == 1:
        first = " ".join([first, *others[:1]])
    when = first.partition(": ")[0].removesuffix(".") + "."
    if parameter.default not in (None, ""):
        span = "" if parameter.max is None else f" ({parameter.min} to {parameter.max})"
        when += f" Default: {str(parameter.default).lower()}{span}."
    return f"| [`{parameter.name}`]({parameter.page}.md) | {when} |"


def with_generated(page: str, generated: str) -> str:
    """Return the page with the text between its two markers replaced.

    Raises:
        ValueError: one of the markers is missing.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page lacks one of the markers {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n\n{generated}\n\n{END}{after}"


def stale_files(root: Path = ROOT) -> dict[str, str]:
    """Return the correct text of each file that differs from the source, by its path in the repository.

    Raises:
        SourceError: the source has mistakes.
        ValueError: docs/parameters.md lacks one of its markers.
    """
    source = read(root)
    page = with_generated((root / PAGE).read_text(encoding="utf-8"), reference(source))
    wanted = {**files(source), PAGE: page}
    return {path: text for path, text in wanted.items() if _text(root / path) != text}


def _text(path: Path) -> str:
    """Return the text of a file; empty if it does not exist, as for a new strategy."""
    if path.exists():
        return path.read_text(encoding="utf-8")
    return ""


def main(root: Path = ROOT) -> int:
    try:
        stale = stale_files(root)
    except SourceError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    for path, text in stale.items():
        (root / path).write_text(text, encoding="utf-8")
        sys.stdout.write(f"{path} written\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

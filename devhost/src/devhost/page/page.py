"""Writes the page of a trace: one section for each turn in it."""

import unicodedata
from collections.abc import Callable
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from devhost.errors import TraceError
from devhost.node.outputs.run import ANSWERED, sent_otherwise
from devhost.page.calls import given_to, offered_tools, prompt_of, results_of, said_by, traceback_of
from devhost.page.contents import hint, number, passages, pretty, written, written_values
from devhost.page.turns import shown_turns
from devhost.text import worded
from devhost.trace.lines import PrintedLine, Trace
from devhost.trace.runs import written_calls
from devhost.words import counted, price_text

GENERATOR = "devhost report"
"""The generator that is named in the head of a page, which identifies pages made by devhost."""
MARK = f'<meta name="generator" content="{GENERATOR}">'.encode()
HEAD_BYTES = 1_000


def write_page(page: str, file: Path, trace: Path, *, force: bool) -> None:
    """Writes the page to a file. `force` overwrites any existing file except the trace."""
    refuse_to_destroy(file, trace, force=force)
    with worded(lambda why: TraceError(f"{file} cannot be written: {why}")):
        file.write_text(page, encoding="utf-8", errors="replace")


def refuse_to_destroy(file: Path, trace: Path, *, force: bool) -> None:
    """Raises TraceError if the file must not be overwritten or its folder does not exist."""
    if not file.parent.is_dir():
        raise TraceError(f"{file} cannot be written: the folder {file.parent} does not exist")
    if not file.is_file():
        return
    if file.samefile(trace):
        raise TraceError(f"{file} is the trace itself: name another file")
    if force:
        return
    with file.open("rb") as existing:
        head = existing.read(HEAD_BYTES)
    if head and MARK not in head:
        raise TraceError(f"{file} exists and is not a page that devhost made: name another file, or give --force")


# The templates and the functions that they call.

DEVHOST = Path(__file__).parent.parent
TEMPLATES = [DEVHOST / folder for folder in ("page", "evaluation", "comparison", "console/templates")]
LONGEST = 20_000
"""How many characters of a text the page shows. The trace contains the whole text."""

FUNCTIONS: tuple[Callable[..., object], ...] = (
    *(said_by, written_calls, prompt_of, offered_tools, given_to, results_of, traceback_of),
    *(written_values, passages, sent_otherwise, counted),
)
"""Functions that templates call by name."""


@cache
def page_environment(*functions: Callable[..., object]) -> Environment:
    """Returns the environment of the templates, which can also call the given functions by name."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = {"clip": clip, "pretty": pretty, "written": written, "hint": hint, "number": number, "price": price_text}
    environment.filters.update(filters)
    environment.globals.update({each.__name__: each for each in (*FUNCTIONS, *functions)})
    environment.globals.update(GENERATOR=GENERATOR, ANSWERED=ANSWERED)
    return environment


def clip(text: str) -> str:
    """Returns the text without control characters and cut off after `LONGEST` characters."""
    shown = "".join(
        "�" if unicodedata.category(letter) == "Cc" and letter not in "\n\t" else letter for letter in text[:LONGEST]
    )
    left = len(text) - LONGEST
    if left > 0:
        return f"{shown}\n… {counted(left, 'more character')} in the trace"
    return shown


def render_page(trace: Trace, folder: Path | None = None) -> str:
    """Returns the page of a trace as HTML. `folder` is the folder of the page, if that is known."""
    printed = [line for line in trace.lines if isinstance(line, PrintedLine)]
    facts = {"header": trace.header, "notices": trace.notices, "cut_off": trace.cut_off, "printed": printed}
    return page_environment().get_template("page.html.j2").render(**facts, turns=shown_turns(trace, folder))

"""The templates, and the words that they make of values."""

import unicodedata
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from devhost.page.calls.offered import parameter_rows
from devhost.page.calls.opened import model_call, tool_call
from devhost.page.file import GENERATOR
from devhost.page.parts.bars import written
from devhost.page.parts.folds import DEEPEST, every
from devhost.page.parts.words import hint, is_long, number, pretty, written_values
from devhost.text.counted import counted
from devhost.text.price import price_text

HERE = Path(__file__).parent
LONGEST = 20_000
"""Characters of one text; the trace has the rest."""
LONGEST_HEADING = 1_000
"""Characters of a question; of a longer one, only the beginning is a heading."""
LONGEST_OPEN = 2_000
"""Characters of a text variable; a longer one, such as a state, is folded."""
LONGEST_PASSAGE = 240
"""Characters of the passage of a source; a longer one is folded."""


def page_environment(*folders: Path) -> Environment:
    """`folders`: those of templates besides the ones here."""
    environment = Environment(
        loader=FileSystemLoader([HERE, *folders]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        clip=clip, pretty=pretty, written=written, hint=hint, number=number, price=price_text, identity=id
    )
    environment.tests.update(long=is_long)
    environment.globals.update(
        model_call=model_call,
        tool_call=tool_call,
        written_values=written_values,
        parameter_rows=parameter_rows,
        every=every,
        counted=counted,
        DEEPEST=DEEPEST,
        LONGEST_HEADING=LONGEST_HEADING,
        LONGEST_OPEN=LONGEST_OPEN,
        LONGEST_PASSAGE=LONGEST_PASSAGE,
        GENERATOR=GENERATOR,
    )
    return environment


def clip(text: str) -> str:
    """Without control characters, and cut at `LONGEST` characters."""
    shown = "".join(
        "�" if unicodedata.category(letter) == "Cc" and letter not in "\n\t" else letter for letter in text[:LONGEST]
    )
    left = len(text) - LONGEST
    return f"{shown}\n… {counted(left, 'more character')} in the trace" if left > 0 else shown

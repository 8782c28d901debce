"""The templates, and the words that they make of values."""

import json
import unicodedata
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from devhost.page.file import GENERATOR
from devhost.page.parts.bars import written
from devhost.page.parts.opened import model_call, tool_call
from devhost.text.price import price_text
from devhost.trace.timeline import Span

HERE = Path(__file__).parent
LONGEST = 20_000
"""Characters of one text; the trace has the rest."""
LONGEST_OPEN = 2_000
"""Characters of a text variable; a longer one, such as a state, is folded."""


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
    environment.globals.update(
        model_call=model_call,
        tool_call=tool_call,
        written_values=written_values,
        LONGEST_OPEN=LONGEST_OPEN,
        GENERATOR=GENERATOR,
    )
    return environment


def written_values(span: Span) -> object:
    """What the model wrote as the arguments of this tool call; None if the log does not say that it is one."""
    if span.written is not None:
        return span.written.values
    return span.data.get("arguments", {}) if "tool_call_id" in span.data else None


def pretty(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2, default=str)


def clip(text: str) -> str:
    """Without control characters, and cut at `LONGEST` characters."""
    shown = "".join(
        "�" if unicodedata.category(letter) == "Cc" and letter not in "\n\t" else letter for letter in text[:LONGEST]
    )
    left = len(text) - LONGEST
    return f"{shown}\n… {left:,} more characters are in the trace" if left > 0 else shown


def number(value: object) -> str:
    """A number of the usage as text; a plugin may have sent any other value in its place."""
    return f"{value:,}" if isinstance(value, int | float) else "–"


def hint(span: Span) -> str:
    """A few words beside the name: what a tool was given, or what a model call cost."""
    for call in span.calls:
        if call.kind == "llm":
            tokens = [number(call.usage.get(name)) for name in ("prompt_tokens", "completion_tokens")]
            return f"{' → '.join(tokens)} tokens" if call.usage else ""
        return _arguments(tool_call(call).arguments)
    return _arguments(written_values(span))


def _arguments(values: object) -> str:
    if not isinstance(values, dict):
        return str(values or "")[:200]
    return ", ".join(f"{name}: {pretty(value)}" for name, value in values.items())[:200]

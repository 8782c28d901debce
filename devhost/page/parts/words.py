"""The words that a page makes of values and rows.

In: a value of a trace, or a span. Out: text, which the template escapes.
"""

import json

from devhost.page.calls.opened import tool_call
from devhost.page.parts.folds import every
from devhost.text.counted import counted
from devhost.trace.timeline import Span

PHONE_LETTERS, PHONE_LINES = 30, 13
"""Of a box with code: letters of a line, and the lines that it shows."""


def pretty(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2, default=str)


def is_long(text: str) -> bool:
    """Whether it scrolls within its box on a phone, so that the keyboard has to reach it."""
    return text.count("\n") + len(text) / PHONE_LETTERS > PHONE_LINES


def number(value: object) -> str:
    """A number of the usage as text; a plugin may have sent any other value in its place."""
    return f"{value:,}" if isinstance(value, int | float) else "–"


def written_values(span: Span) -> object:
    """What the model wrote as the arguments of this tool call; None if the log does not say that it is one."""
    if span.written is not None:
        return span.written.values
    return span.data.get("arguments", {}) if "tool_call_id" in span.data else None


def hint(span: Span) -> str:
    """A few words beside the name: what a tool was given, what a model call cost, or what a group holds."""
    for call in span.calls:
        if call.kind == "llm":
            tokens = [number(call.usage.get(name)) for name in ("prompt_tokens", "completion_tokens")]
            return f"{' → '.join(tokens)} tokens" if call.usage else ""
        return _arguments(tool_call(call).arguments)
    return _counts(span) if span.children else _arguments(written_values(span))


def _counts(group: Span) -> str:
    """Such as "2 model calls, 1 tool call, 1 failed"."""
    inner = list(every(group.children))
    kinds = [call.kind for span in inner for call in span.calls]
    failed = sum(span.status == "error" for span in inner)
    named = ((kinds.count("llm"), "model call"), (kinds.count("tool"), "tool call"))
    calls = [counted(count, name) for count, name in named if count]
    return ", ".join([*calls, *([f"{failed} failed"] if failed else [])])


def _arguments(values: object) -> str:
    if not isinstance(values, dict):
        return str(values or "")[:200]
    return ", ".join(f"{name}: {_in_a_line(value)}" for name, value in values.items())[:200]


def _in_a_line(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)

"""The colours of the timeline and what they mean: those that its rows have, and no others."""

from collections.abc import Iterable
from dataclasses import dataclass

from devhost.trace.timeline import Span, SpanKind


@dataclass(frozen=True)
class Colour:
    variable: str
    """Its name in `styles/base.css`."""
    words: str


FAILED = Colour("bad", "failed")
COLOURS: dict[SpanKind, tuple[Colour, ...]] = {
    "model": (Colour("model-wait", "model, waiting"), Colour("model", "model, answering")),
    "tool": (Colour("tool", "tool"),),
    "group": (Colour("group", "group of entries"),),
    "step": (Colour("other", "log entry without a request"),),
    "moment": (Colour("other", "log entry without a request"),),
}


def legend(spans: Iterable[Span]) -> list[Colour]:
    """`spans`: all rows. In the order of `COLOURS`, failures last."""
    rows = list(spans)
    kinds = {span.kind for span in rows if span.status != "error" or span.kind == "model"}
    used = [colour for kind, colours in COLOURS.items() if kind in kinds for colour in colours]
    return [*dict.fromkeys(used), *([FAILED] if any(span.status == "error" for span in rows) else [])]

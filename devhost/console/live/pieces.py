"""A run's section of a page in pieces, each an element with an id, so that only what has changed is sent.

In: a `ShownRun`. Out: the HTML of each piece. The rows of a group that has ended are rendered once: of a long run, a
change costs what its last group costs.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from jinja2 import Environment

from devhost.page.parts.shown import ShownRun
from devhost.trace.timeline import OPEN, Span


@dataclass(frozen=True)
class Section:
    """One run of a conversation."""

    number: int
    scale: str
    """The style of the timeline: its length."""
    pieces: Mapping[str, str]
    """HTML by the id of its element, in the order of the page."""
    rows: tuple[str, ...]
    """The ids of those pieces that are rows, in their order."""


@dataclass
class Changes:
    """Of one listener: what it has been told. Not for several threads at once."""

    _told: dict[int, Section] = field(default_factory=dict)

    def knows(self, number: int) -> bool:
        return number in self._told

    def of(self, section: Section) -> dict[str, object] | None:
        """What is new, as JSON; None if nothing is."""
        before = self._told.get(section.number)
        self._told[section.number] = section
        if section == before:
            return None
        known = {} if before is None else before.pieces
        return {
            "run": section.number,
            "scale": section.scale,
            "rows": section.rows,
            "pieces": {name: html for name, html in section.pieces.items() if known.get(name) != html},
        }


class Rendering:
    """Of one run's trace; keeps what cannot change any more."""

    def __init__(self, environment: Environment) -> None:
        self._facts, self._answer, self._axis, self._results = (
            _macro(environment, "run.html.j2", name) for name in ("facts", "answer", "axis", "results")
        )
        self._row = _macro(environment, "row.html.j2", "row")
        self._ended: dict[tuple[str, bool, int], str] = {}

    def section(self, shown: ShownRun) -> Section:
        name = f"run-{shown.number}"
        rows = {shown.anchors[id(span)]: self._html_of(span, shown) for span in shown.spans}
        pieces = {
            f"{name}-facts": self._facts(shown),
            f"{name}-answer": self._answer(shown),
            f"{name}-axis": self._axis(shown),
            **rows,
            f"{name}-results": self._results(shown),
        }
        return Section(shown.number, shown.axis.scale, pieces, tuple(rows))

    def _html_of(self, span: Span, shown: ShownRun) -> str:
        inside = list(_with_children(span))
        # What a plugin printed may still come.
        key = (shown.anchors[id(span)], shown.is_open(span), len(inside))
        html = self._ended.get(key)
        if html is None:
            html = self._row(span, 0, shown, lazy=True)
            if all(each.status != OPEN for each in inside):
                self._ended[key] = html
        return html


def _macro(environment: Environment, template: str, name: str) -> Callable[..., str]:
    found = getattr(environment.get_template(template).module, name)
    return lambda *given, **named: str(found(*given, **named))


def _with_children(span: Span) -> Iterator[Span]:
    yield span
    for child in span.children:
        yield from _with_children(child)

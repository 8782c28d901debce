"""Which groups of a timeline show their children at first.

In: the spans. Out: the `id()` of each open group: in a short run all, in a long one the last, and those in which a row
failed or has not ended.
"""

from collections.abc import Iterator, Sequence

from devhost.trace.timeline import Span

FEW_ROWS = 60
"""So many rows are read at a glance."""
DEEPEST = 24
"""Groups that stand deeper show all that is in them side by side: browsers and templates nest only so far."""


def open_groups(spans: Sequence[Span]) -> frozenset[int]:
    if sum(1 for _ in every(spans)) <= FEW_ROWS:
        return frozenset(id(span) for span in every(spans) if span.children)
    return frozenset({*_around_failures(spans), *_last(spans)})


def every(spans: Sequence[Span]) -> Iterator[Span]:
    """The spans with all that is below them, in the order of the page."""
    for span in spans:
        yield span
        yield from every(span.children)


def _around_failures(spans: Sequence[Span]) -> Iterator[int]:
    for span in spans:
        below = list(_around_failures(span.children))
        yield from below
        if below or any(child.status != "success" for child in span.children):
            yield id(span)


def _last(spans: Sequence[Span]) -> Iterator[int]:
    """The last group with the last group in it, and so on."""
    group = next((span for span in reversed(spans) if span.children), None)
    if group is not None:
        yield id(group)
        yield from _last(group.children)

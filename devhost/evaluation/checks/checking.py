"""Whether a run fits what its case expects. In: `Expected`, `Observed`. Out: a `Check` for each expectation."""

from collections.abc import Iterator
from dataclasses import dataclass

from devhost.evaluation.checks.calls import call_checks
from devhost.evaluation.checks.check import Check
from devhost.evaluation.checks.expected import Bounds, Expected, SourcesExpected, TextExpected
from devhost.evaluation.checks.observed import Observed
from devhost.evaluation.checks.texts import NO_TEXT, text_checks


@dataclass(frozen=True)
class _Bounded:
    name: str
    value: float
    bounds: Bounds | None


def checks(expected: Expected, observed: Observed) -> Iterator[Check]:
    """All but the judge's. A run that failed fits no case."""
    if observed.error is not None:
        yield Check("run", "it ends without an error", observed.error)
    if expected.text is not None:
        yield from _text(expected.text, observed.text)
    if expected.calls is not None:
        yield from call_checks(expected.calls, observed.calls)
    if expected.stop_reason:
        found = "" if observed.stop_reason in expected.stop_reason else observed.stop_reason or "none"
        yield Check("stop_reason", " or ".join(expected.stop_reason), found)
    if expected.sources is not None:
        yield from _sources(expected.sources, observed.cited)
    for each in (
        _Bounded("rounds", observed.rounds, expected.rounds),
        _Bounded("tokens", observed.tokens, expected.tokens),
        _Bounded("seconds", observed.seconds, expected.seconds),
    ):
        if each.bounds is not None:
            yield from _bounds(each.name, each.value, each.bounds)


def _text(expected: TextExpected, text: str) -> Iterator[Check]:
    yield from text_checks("text", expected, text)
    if expected.equals is not None:
        yield Check("text equals", expected.equals, "" if text == expected.equals.strip() else text or NO_TEXT)


def _sources(expected: SourcesExpected, cited: tuple[str, ...]) -> Iterator[Check]:
    found = ", ".join(cited) or "none"
    for part in expected.cited:
        yield Check("sources cited", part, "" if any(part in source for source in cited) else found)
    yield from _bounds("sources cited", len(cited), Bounds(at_least=expected.at_least, at_most=expected.at_most))


def _bounds(name: str, value: float, bounds: Bounds) -> Iterator[Check]:
    if bounds.at_least is not None:
        yield Check(name, f"at least {bounds.at_least:,g}", "" if value >= bounds.at_least else f"{value:,g}")
    if bounds.at_most is not None:
        yield Check(name, f"at most {bounds.at_most:,g}", "" if value <= bounds.at_most else f"{value:,g}")

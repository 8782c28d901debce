"""Whether the tool calls of a run are those that a case expects. In: both. Out: a `Check` for each expectation."""

from collections.abc import Iterator, Sequence

from devhost.evaluation.checks.check import Check
from devhost.evaluation.checks.expected import CallsExpected, ExpectedCall
from devhost.evaluation.checks.observed import Call


def call_checks(expected: CallsExpected, calls: Sequence[Call]) -> Iterator[Check]:
    made = _listed(calls)
    if expected.exactly is not None:
        same = len(calls) == len(expected.exactly) and all(map(_fits, expected.exactly, calls))
        yield Check("calls exactly", _listed(expected.exactly), "" if same else made)
    if expected.in_order:
        yield Check("calls in order", _listed(expected.in_order), "" if _in_order(expected.in_order, calls) else made)
    if expected.at_least:
        yield Check("calls at least", _listed(expected.at_least), "" if _among(expected.at_least, calls) else made)
    for never in expected.never:
        found = [call for call in calls if _fits(never, call)]
        yield Check("calls never", str(never), _listed(found) if found else "")


def _listed(calls: Sequence[Call | ExpectedCall]) -> str:
    return ", ".join(map(str, calls)) or "no call"


def _fits(expected: ExpectedCall, call: Call) -> bool:
    given = call.arguments
    return expected.name == call.name and all(
        name in given and given[name] == value for name, value in expected.arguments.items()
    )


def _in_order(expected: Sequence[ExpectedCall], calls: Sequence[Call]) -> bool:
    following = iter(calls)
    return all(any(_fits(each, call) for call in following) for each in expected)


def _among(expected: Sequence[ExpectedCall], calls: Sequence[Call]) -> bool:
    """Whether each expected call has a call of its own: a search of augmenting paths in a bipartite graph."""
    taken: dict[int, int] = {}

    def place(wanted: int, tried: set[int]) -> bool:
        for number, call in enumerate(calls):
            if number not in tried and _fits(expected[wanted], call):
                tried.add(number)
                if number not in taken or place(taken[number], tried):
                    taken[number] = wanted
                    return True
        return False

    return all(place(wanted, set()) for wanted in range(len(expected)))

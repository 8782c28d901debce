"""Whether a turn fits what its case expects. In: `FlowExpected`, `Outcome`. Out: a `Check` for each expectation."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from devhost.evaluation.checks.calls import call_checks
from devhost.evaluation.checks.check import Check
from devhost.flow.cases.outcome import NodeOutcome, Outcome
from devhost.flow.document import FlowFile
from devhost.flow.expectations.expected import FlowExpected, NodeExpected, ValueExpected
from devhost.flow.expectations.values import Missing, found_at, value_checks


def checks(expected: FlowExpected, outcome: Outcome, file: FlowFile) -> Iterator[Check]:
    yield _status("status", expected.status, outcome.status, outcome.error)
    if expected.error is not None:
        yield from value_checks("error", expected.error, outcome.error)
    if expected.answer is not None:
        yield from _values("", {"answer": expected.answer}, outcome.outputs)
    yield from _values("output ", expected.outputs, outcome.outputs)
    yield from _values("conversation variable ", expected.conversation, outcome.conversation)
    ran = ", ".join(outcome.nodes) or "no node"
    for name in expected.ran:
        yield Check("ran", name, "" if file.node(name).id in outcome.nodes else ran)
    for name in expected.not_run:
        yield Check("not_run", name, ran if file.node(name).id in outcome.nodes else "")
    for name, of_node in expected.nodes.items():
        node = file.node(name)
        for check in _node(of_node, outcome.nodes.get(node.id), ran):
            yield replace(check, name=f"{node}: {check.name}")


def _node(expected: NodeExpected, outcome: NodeOutcome | None, ran: str) -> Iterator[Check]:
    if outcome is None:
        yield Check("ran", "it runs", ran)
        return
    if expected.status:
        yield _status("status", expected.status, outcome.status, outcome.error)
    if expected.error is not None:
        yield from value_checks("error", expected.error, outcome.error)
    yield from _values("output ", expected.outputs, outcome.outputs)
    if expected.calls is not None:
        yield from call_checks(expected.calls, outcome.calls)


def _status(name: str, expected: tuple[str, ...], found: str, error: str) -> Check:
    because = f" ({error})" if error else ""
    return Check(name, " or ".join(expected), "" if found in expected else f"{found}{because}")


def _values(place: str, expected: Mapping[str, ValueExpected], values: Mapping[str, object]) -> Iterator[Check]:
    for path, of_value in expected.items():
        found = found_at(values, path)
        if isinstance(found, Missing):
            yield Check(f"{place}{path}", "a value", str(found))
        else:
            yield from value_checks(f"{place}{path}", of_value, found)

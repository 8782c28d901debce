"""The observed result of a node, a turn or a conversation, which expectations and evaluations use."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Annotated, Any

from pydantic import Field, GetPydanticSchema
from pydantic_core import core_schema

from devhost.node.outputs.run import Run, SentToolCall
from devhost.node.texts import ThoughtSpans
from devhost.trace.flow import FlowNode, NodeEnded
from devhost.trace.played import PlayedTurn

_ANYTHING = GetPydanticSchema(lambda _type, _handler: core_schema.any_schema())
_UNKEPT = Field(exclude=True)
"""Marks a field that is not kept in the results of an evaluation."""


@dataclass(frozen=True)
class Observed:
    """The result of a conversation: text, sources, stop reason and nodes of its last turn, and sums over all turns."""

    text: str
    """The answer without thoughts, or the outputs of a workflow."""
    error: str | None = None
    calls: tuple[SentToolCall, ...] = ()
    """The tool calls of agents."""
    stop_reason: str = ""
    """The stop reason that the strategy reports; empty if it reports none."""
    sources: tuple[str, ...] = ()
    """The title and document of each source that the answer cites."""
    rounds: int = 0
    """The number of rounds that the strategy reports, or else the number of its model calls."""
    tokens: int = 0
    price: str = "0"
    currency: str = "USD"
    seconds: float = 0.0
    findings: tuple[str, ...] = ()
    """Dify's rules that the runs violated."""
    status: Annotated[str, _UNKEPT] = ""
    outputs: Annotated[Mapping[str, Any], _ANYTHING, _UNKEPT] = field(default_factory=dict)
    conversation: Annotated[Mapping[str, Any], _ANYTHING, _UNKEPT] = field(default_factory=dict)
    """The conversation variables."""
    nodes: Annotated[Sequence["NodeObserved"], _ANYTHING, _UNKEPT] = ()
    """The nodes that ran, in the order in which they first ended."""

    @property
    def failed(self) -> tuple[SentToolCall, ...]:
        return tuple(call for call in self.calls if call.error)

    @property
    def failed_calls(self) -> int:
        return len(self.failed)

    @property
    def errors_of_calls(self) -> tuple[str, ...]:
        """The errors of failed calls, such as `find_parts: KeyError: 'wordy', tools/find_parts.py:14`."""
        return tuple(f"{call.name}: {call.error}" for call in self.failed)

    @property
    def has_known_price(self) -> bool:
        """Whether the price is known. A model with an unknown price counts tokens, but no price."""
        return not self.tokens or Decimal(self.price) > 0

    @classmethod
    def of(cls, runs: Sequence[Run]) -> "Observed":
        """Sum up the runs of strategies."""
        if not runs:
            return cls("")
        last = runs[-1]
        return cls(
            text=without_thoughts(last.outputs.text),
            error=None if last.error is None else f"{last.error.kind}: {last.error.message}",
            calls=tuple(call for run in runs for call in run.calls.tools.values()),
            stop_reason=last.ending.stop_reason,
            sources=tuple(_cited(last.outputs.variables.get("sources"))),
            rounds=sum(map(rounds_of, runs)),
            tokens=sum(run.calls.spent["total_tokens"] for run in runs),
            price=str(sum((Decimal(run.calls.spent["total_price"]) for run in runs), Decimal(0))),
            currency=last.calls.spent["currency"],
            seconds=round(sum(run.elapsed_seconds for run in runs), 3),
            findings=tuple(dict.fromkeys(finding.rule for run in runs for finding in run.findings)),
        )

    @classmethod
    def of_turns(cls, turns: Sequence[PlayedTurn]) -> "Observed":
        """Sum up turns. A strategy's turn also has the outputs of its only node."""
        last = turns[-1]
        seen = cls.of([run for turn in turns for run in turn.runs])
        nodes = tuple(_observed_nodes(last.nodes))
        put_out = ""
        if last.outputs:
            put_out = json.dumps(last.end.outputs, ensure_ascii=False)
        own = nodes[-1].observed.outputs if last.is_direct and nodes else {}
        seen = replace(
            seen,
            text=without_thoughts(str(last.end.outputs.get("answer") or put_out)),
            error=last.end.error or (last.end.status if last.end.status in NOT_WELL else None),
            status=last.end.status,
            outputs={**own, **last.end.outputs},
            conversation=last.end.conversation,
            nodes=nodes,
        )
        if last.is_direct:
            return seen
        return replace(
            seen,
            tokens=sum(turn.tokens for turn in turns),
            price=str(sum((turn.price for turn in turns), Decimal(0))),
            seconds=round(sum(turn.seconds for turn in turns), 3),
        )


WELL = ("succeeded", "partial-succeeded")
NOT_WELL = frozenset({"failed", "stopped", "paused"})


@dataclass(frozen=True)
class NodeObserved:
    node: FlowNode
    observed: Observed


def _observed_nodes(ends: Sequence[NodeEnded]) -> Iterator[NodeObserved]:
    """Yield each node once. If a node ran several times, its last run counts, with the calls of all its runs."""
    last = {ended.node.id: ended for ended in ends}
    for ended in last.values():
        runs = [each.run for each in ends if each.node.id == ended.node.id and each.run is not None]
        seen = replace(Observed.of(runs), status=ended.status, error=ended.error or None, outputs=ended.outputs)
        yield NodeObserved(ended.node, seen)


def without_thoughts(text: str) -> str:
    spans = ThoughtSpans()
    said = [*spans.feed(text), *spans.finish()]
    return "".join(part for is_thought, part in said if not is_thought).strip()


def _cited(sources: object) -> list[str]:
    listed = []
    if isinstance(sources, list):
        listed = sources
    return [
        f"{source.get('title') or ''} ({source.get('document_id') or ''})"
        for source in listed
        if isinstance(source, dict) and source.get("cited")
    ]


def rounds_of(run: Run) -> int:
    """Return the number of rounds that the strategy reports, or else the number of model calls."""
    for value in run.outputs.json_of_strategy():
        match value:
            case {"decision_summary": {"rounds": int(rounds)}}:
                return rounds
    return run.asked.get("llm", 0)

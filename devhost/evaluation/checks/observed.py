"""What a case can expect something of. In: the runs of one conversation, in order. Out: an `Observed`."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from devhost.node.messages.thought_spans import ThoughtSpans
from devhost.node.outputs.run import Run
from devhost.protocol.wire import JsonObject


@dataclass(frozen=True)
class Call:
    """A tool call that reached its tool."""

    name: str
    arguments: JsonObject
    """As the tool got them."""

    def __str__(self) -> str:
        return f"{self.name}({json.dumps(self.arguments, ensure_ascii=False)})"


@dataclass(frozen=True)
class Observed:
    """Of a conversation: text, sources and stop reason of its last run, the sums of all runs."""

    text: str
    """Without thoughts."""
    error: str | None = None
    calls: tuple[Call, ...] = ()
    stop_reason: str = ""
    """Empty if the strategy reports none."""
    cited: tuple[str, ...] = ()
    """Title and document of each source that the answer cites."""
    rounds: int = 0
    """As the strategy reports them; of one that reports none, the number of its model calls."""
    tokens: int = 0
    price: str = "0"
    currency: str = "USD"
    seconds: float = 0.0
    findings: tuple[str, ...] = field(default=())
    """The rules of Dify that the runs broke."""

    @classmethod
    def of(cls, runs: Sequence[Run]) -> "Observed":
        last = runs[-1]
        return cls(
            text=_without_thoughts(last.outputs.text),
            error=None if last.error is None else f"{last.error.kind}: {last.error.message}",
            calls=tuple(call for run in runs for call in _calls(run)),
            stop_reason=last.ending.stop_reason,
            cited=tuple(_cited(last.outputs.variables.get("sources"))),
            rounds=sum(map(rounds_of, runs)),
            tokens=sum(run.calls.spent["total_tokens"] for run in runs),
            price=str(sum((Decimal(run.calls.spent["total_price"]) for run in runs), Decimal(0))),
            currency=last.calls.spent["currency"],
            seconds=round(sum(run.elapsed_seconds for run in runs), 3),
            findings=tuple(dict.fromkeys(finding.rule for run in runs for finding in run.findings)),
        )


def _without_thoughts(text: str) -> str:
    spans = ThoughtSpans()
    said = [*spans.feed(text), *spans.finish()]
    return "".join(part for is_thought, part in said if not is_thought).strip()


def _calls(run: Run) -> list[Call]:
    return [Call(name, run.calls.sent.get(request, {})) for request, name in run.calls.tools.items()]


def _cited(sources: object) -> list[str]:
    listed = sources if isinstance(sources, list) else []
    return [
        f"{source.get('title') or ''} ({source.get('document_id') or ''})"
        for source in listed
        if isinstance(source, dict) and source.get("cited")
    ]


def rounds_of(run: Run) -> int:
    """As its strategy says, or else the number of model calls."""
    for value in run.outputs.json_of_strategy():
        match value:
            case {"decision_summary": {"rounds": int(rounds)}}:
                return rounds
    return run.asked.get("llm", 0)

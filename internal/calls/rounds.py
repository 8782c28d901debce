"""The tool rounds of one loop: calls are answered, and the answers written down where later rounds look for them.

In: a turn and its judged calls. Out: events; then the transcript has the turn with one result per call, the
bibliography the sources, and the guard the calls.
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from internal.calls.guards import RepeatGuard
from internal.calls.judging import refuse_calls
from internal.calls.runner import ToolRunner
from internal.conversation.transcript import Transcript
from internal.host.clock import Deadline
from internal.model.reading import ModelTurn
from internal.report.events import CallsAnswered, Event, ToolFinished, ToolStarted
from internal.report.sources import Bibliography, citation_lines
from internal.report.tool_calls import CallStatus, EndedCall, JudgedCall, RejectedCall, ValidCall
from internal.text.kept_text import cut_to_size, with_sources
from internal.text.notes import OurWords
from prompt import template


@dataclass
class ToolRounds:
    """Answers and records the calls of a transcript, which may have had rounds before."""

    tools: ToolRunner
    transcript: Transcript
    bibliography: Bibliography
    guard: RepeatGuard
    _before: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Count from here."""
        self._before = self.transcript.rounds

    @property
    def done(self) -> int:
        """Rounds since this object was made."""
        return self.transcript.rounds - self._before

    def run(
        self, turn: ModelTurn, judged: Sequence[JudgedCall], parent: str, deadline: Deadline
    ) -> Generator[Event, None, None]:
        """Answer the calls and append the round; sources are numbered in the model's order, not as calls end."""
        calls = _by_key(judged, parent)
        ended = yield from self._answer_at_once(calls)
        to_run = {key: call for key, call in calls.items() if isinstance(call, ValidCall) and key not in ended}
        ended |= yield from self.tools.run(to_run, deadline)
        in_order = tuple(ended[key] for key in calls)
        self.transcript.append_round(turn.content, turn.opaque_body, [self._with_sources(call) for call in in_order])
        yield CallsAnswered(self.done, in_order)
        self.guard.record_round(in_order)

    def refuse(self, turn: ModelTurn, parent: str) -> Generator[Event, None, None]:
        """Calls of a cut or closing turn do not run, and the model reads no answer; the log shows them."""
        if turn.calls:
            ended = yield from self._answer_at_once(_by_key(refuse_calls(turn.calls), parent))
            yield CallsAnswered(self.done + 1, tuple(ended.values()))

    def _answer_at_once(self, calls: Mapping[str, JudgedCall]) -> Generator[Event, None, dict[str, EndedCall]]:
        """Answer the calls that no tool has to run for: rejected ones, and those of virtual tools."""
        ended: dict[str, EndedCall] = {}
        for key, call in calls.items():
            if isinstance(call, RejectedCall):
                text = cut_to_size(call.text, self.tools.result_limit)
                ended[key] = EndedCall(call, CallStatus.REFUSED, text, OurWords("not run"))
            elif call.tool.virtual_schema is not None:
                ended[key] = EndedCall(call, CallStatus.OK, template.ACCEPTED)
            else:
                continue
            yield ToolStarted(key, call)
            yield ToolFinished(key, ended[key])
        return ended

    def _with_sources(self, call: EndedCall) -> EndedCall:
        """The result with the numbers under which the model can cite its sources."""
        numbers = self.bibliography.add(call.sources)
        cited = citation_lines(zip(numbers, call.sources, strict=True))
        return replace(call, tool_response=with_sources(call.tool_response, cited, self.tools.result_limit))


def _by_key(judged: Iterable[JudgedCall], parent: str) -> dict[str, JudgedCall]:
    """The calls of a turn by their keys in the log, in the model's order."""
    return {f"{parent}.call{position}": call for position, call in enumerate(judged, start=1)}

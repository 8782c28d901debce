"""The tool rounds of one loop: calls are answered, and the answers written down where later rounds look for them.

In: a turn and its judged calls. Out: events; then the transcript has the turn with one result per call, the
bibliography the sources, and the guard the calls. Results are cut to the limit here and nowhere else; the whole text of
one that is cut stays readable for the model. A turn that only reads such texts is not a tool round.
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from internal.call import CallStatus, EndedCall, JudgedCall, RejectedCall, ValidCall, WaitingCall
from internal.calls.judging import Approvals, RepeatGuard, refuse_calls, waits
from internal.calls.runner import ToolRunner, changed
from internal.clock import Deadline
from internal.errors import OurWords
from internal.events import CallsAnswered, Event, ToolFinished, ToolStarted
from internal.memory.records import RoundRecord, messages_of, record_of_round
from internal.model.reading import ModelTurn, TurnSpan
from internal.node.tools import ToolKind
from internal.sources import Bibliography, citation_lines
from internal.text.texts import Excerpt, cut_to_size
from internal.transcript.long_results import read_result
from internal.transcript.transcript import Transcript
from prompt import template


@dataclass
class ToolRounds:
    """Answers and records the calls of a transcript, which may have had rounds before."""

    tools: ToolRunner
    transcript: Transcript
    bibliography: Bibliography
    guard: RepeatGuard
    result_limit: int
    """Characters of one result that the model reads."""
    approvals: Approvals
    _before: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Count from here."""
        self._before = self.transcript.rounds

    @property
    def done(self) -> int:
        """Tool rounds since this object was made."""
        return self.transcript.rounds - self._before

    def run(
        self, turn: ModelTurn, judged: Sequence[JudgedCall], span: TurnSpan, deadline: Deadline
    ) -> Generator[Event, None, None]:
        """Answer the calls and append the round; sources are numbered in the model's order, not as calls end."""
        only_reads = self._only_reads(judged)
        in_order = yield from self._answer_all(_by_key(judged, span.round_key), deadline, may_read=only_reads)
        results = [self._for_model(call) for call in in_order]
        if not waits(judged):  # else the run that has the user's answer closes the round
            self.transcript.append_round(turn.content, turn.opaque_body, results, is_tool_round=not only_reads)
        if record := record_of_round(turn.text, results):
            self.transcript.record.append(record)
        yield from self._record(in_order, span.round)

    def resume(
        self, waiting: RoundRecord, judged: Sequence[JudgedCall], parent: str, deadline: Deadline
    ) -> Generator[Event, None, None]:
        """Close the round that an earlier run left open; ``judged`` are its calls that waited, in their order."""
        in_order = yield from self._answer_all(_by_key(judged, parent), deadline)
        results = [self._for_model(call) for call in in_order]
        shown = waiting.answered(call.read_by_model for call in results)
        record = waiting.answered(call.tool_response for call in results)
        toolbox = self.tools.toolbox
        self.transcript.append_restored(messages_of([shown], toolbox), messages_of([record], toolbox))
        self.transcript.record.append(record)
        yield from self._record(in_order, 0)
        self._before = self.transcript.rounds

    def _answer_all(
        self, calls: Mapping[str, JudgedCall], deadline: Deadline, *, may_read: bool = False
    ) -> Generator[Event, None, list[EndedCall]]:
        """Answer the calls; the results in the model's order."""
        may_read = may_read or self.transcript.long_results.of_run.reading_turns_left > 0
        ended = yield from self._answer_at_once(calls, may_read=may_read)
        to_run = {key: call for key, call in calls.items() if isinstance(call, ValidCall) and key not in ended}
        ended |= yield from changed(self.tools.run(to_run, deadline), self._event_for_people)
        return [ended[key] for key in calls]

    def _record(self, in_order: Iterable[EndedCall], number: int) -> Generator[Event, None, None]:
        """Let the variables and the guard know of a round's calls; ``number`` is 0 for one of an earlier run."""
        answered = tuple(self._for_people(call) for call in in_order if not call.call.is_reading)
        if answered:
            yield CallsAnswered(number, answered)
        # To read the same again does no harm: it has a limit of its own, and the window may have dropped the first.
        self.guard.record_round(answered)

    def refuse(self, turn: ModelTurn, span: TurnSpan) -> Generator[Event, None, None]:
        """Calls of a cut or closing turn do not run, and the model reads no answer; the log shows them."""
        ended = yield from self._answer_at_once(_by_key(refuse_calls(turn.calls), span.round_key), may_read=False)
        if answered := tuple(call for call in ended.values() if not call.call.is_reading):
            yield CallsAnswered(span.round, answered)

    def _only_reads(self, judged: Sequence[JudgedCall]) -> bool:
        """Whether the turn does not count as a tool round; a run has a number of such turns, so that it ends."""
        of_run = self.transcript.long_results.of_run
        if not of_run.reading_turns_left or not all(call.call.is_reading for call in judged):
            return False
        of_run.reading_turns_left -= 1
        return True

    def _answer_at_once(
        self, calls: Mapping[str, JudgedCall], *, may_read: bool
    ) -> Generator[Event, None, dict[str, EndedCall]]:
        """Answer the calls that no tool has to run for: rejected ones, those that wait, and those of virtual tools."""
        ended: dict[str, EndedCall] = {}
        for key, call in calls.items():
            if isinstance(call, ValidCall) and call.tool.kind is ToolKind.RUNS:
                continue
            yield ToolStarted(key, call)
            ended[key] = self._answer(call, may_read=may_read)
            yield ToolFinished(key, ended[key])
        return ended

    def _answer(self, call: JudgedCall, *, may_read: bool) -> EndedCall:
        if isinstance(call, WaitingCall):
            return EndedCall(call, CallStatus.WAITING, template.WAITS_FOR_APPROVAL)
        if isinstance(call, RejectedCall):
            text = cut_to_size(call.text, self.result_limit)
            return EndedCall(call, CallStatus.REFUSED, text, OurWords("not run"))
        if call.tool.kind is ToolKind.HANDS_OVER:
            return EndedCall(call, CallStatus.OK, template.ACCEPTED)
        if not may_read:
            return EndedCall(call, CallStatus.REFUSED, template.NO_MORE_READING, OurWords("not run"))
        started = self.tools.clock.now()
        reply = read_result(self.transcript.long_results, call.arguments, self.result_limit)
        status = CallStatus.ERROR if reply.error else CallStatus.OK
        return EndedCall(call, status, reply.text, reply.error, self.tools.clock.now() - started)

    def _event_for_people(self, event: Event) -> Event:
        return replace(event, call=self._for_people(event.call)) if isinstance(event, ToolFinished) else event

    def _for_people(self, call: EndedCall) -> EndedCall:
        """The call with its result as log, variables and guard have it."""
        return replace(call, tool_response=cut_to_size(call.tool_response, self.result_limit, call.missing), missing=0)

    def _for_model(self, call: EndedCall) -> EndedCall:
        """The call with its result as the model reads it: with the numbers of its sources, within the limit.

        A whole result that does not fit is kept, and the note in what is shown says how to read on.
        """
        numbers = self.bibliography.add(call.sources)
        cited = cut_to_size(citation_lines(zip(numbers, call.sources, strict=True)), self.result_limit // 2)
        end = f"\n\n{cited}" if cited else ""
        text, room = call.tool_response, self.result_limit - len(end)
        result = replace(call, tool_response=cut_to_size(text, room, call.missing) + end, missing=0)
        name = self.transcript.long_results.keep(Excerpt(text, call.missing)) if len(text) > room else None
        if name is None:
            return result
        note = partial(template.CHARACTERS_TO_READ.format, id=name)
        return replace(result, shown=cut_to_size(text, room, call.missing, note) + end)


def _by_key(judged: Iterable[JudgedCall], parent: str) -> dict[str, JudgedCall]:
    """The calls of a turn by their keys in the log, in the model's order."""
    return {f"{parent}.call{position}": call for position, call in enumerate(judged, start=1)}

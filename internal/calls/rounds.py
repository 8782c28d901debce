"""The tool rounds of one loop: calls are answered, and the answers written down where later rounds look for them."""

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from internal.call import CallStatus, EndedCall, JudgedCall, RejectedCall, Result, ValidCall, WaitingCall
from internal.calls.judging import Approvals, RepeatGuard, refuse_calls, waits
from internal.calls.runner import Answer, ToolRunner
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
        ended, results = yield from self._answer_all(_by_key(judged, span.round_key), deadline, may_read=only_reads)
        if not waits(judged):  # else the run that has the user's answer closes the round
            self.transcript.append_round(turn.content, turn.opaque_body, results, is_tool_round=not only_reads)
        if record := record_of_round(turn.text, ended, results):
            self.transcript.record.append(record)
        yield from self._record(ended, span.round)

    def resume(
        self, waiting: RoundRecord, judged: Sequence[JudgedCall], parent: str, deadline: Deadline
    ) -> Generator[Event, None, None]:
        """Close the round that an earlier run left open; ``judged`` are its calls that waited, in their order."""
        ended, results = yield from self._answer_all(_by_key(judged, parent), deadline)
        shown = waiting.answered(result.shown for result in results)
        record = waiting.answered(result.lasting for result in results)
        toolbox = self.tools.toolbox
        self.transcript.append_restored(messages_of([shown], toolbox), messages_of([record], toolbox))
        self.transcript.record.append(record)
        yield from self._record(ended, 0)
        self._before = self.transcript.rounds

    def refuse(self, turn: ModelTurn, span: TurnSpan) -> Generator[Event, None, None]:
        """Calls of a cut or closing turn do not run, and the model reads no answer; the log shows them."""
        answers = yield from self._answer_at_once(_by_key(refuse_calls(turn.calls), span.round_key), may_read=False)
        if answered := tuple(each.ended for each in answers.values() if not each.ended.call.is_reading):
            yield CallsAnswered(span.round, answered)

    def _answer_all(
        self, calls: Mapping[str, JudgedCall], deadline: Deadline, *, may_read: bool = False
    ) -> Generator[Event, None, tuple[list[EndedCall], list[Result]]]:
        """Answer the calls; how they ended and what the model reads, in the model's order."""
        may_read = may_read or self.transcript.long_results.of_run.reading_turns_left > 0
        answers = yield from self._answer_at_once(calls, may_read=may_read)
        to_run = {key: call for key, call in calls.items() if isinstance(call, ValidCall) and key not in answers}
        answers |= yield from self.tools.run(to_run, deadline)
        in_order = [answers[key] for key in calls]
        return [answer.ended for answer in in_order], [self._result(answer) for answer in in_order]

    def _record(self, ended: Iterable[EndedCall], number: int) -> Generator[Event, None, None]:
        """Let the variables and the guard know of a round's calls; ``number`` is 0 for one of an earlier run."""
        # To read the same again does no harm: it has a limit of its own, and the window may have dropped the first.
        answered = tuple(call for call in ended if not call.call.is_reading)
        if answered:
            yield CallsAnswered(number, answered)
        self.guard.record_round(answered)

    def _only_reads(self, judged: Sequence[JudgedCall]) -> bool:
        """Whether the turn does not count as a tool round; a run has a number of such turns, so that it ends."""
        of_run = self.transcript.long_results.of_run
        if not of_run.reading_turns_left or not all(call.call.is_reading for call in judged):
            return False
        of_run.reading_turns_left -= 1
        return True

    def _answer_at_once(
        self, calls: Mapping[str, JudgedCall], *, may_read: bool
    ) -> Generator[Event, None, dict[str, Answer]]:
        """Answer the calls that no tool has to run for: rejected ones, those that wait, and those of virtual tools."""
        answers: dict[str, Answer] = {}
        for key, call in calls.items():
            if isinstance(call, ValidCall) and call.tool.kind is ToolKind.RUNS:
                continue
            yield ToolStarted(key, call)
            ended = self._ended(call, may_read=may_read)
            answers[key] = Answer(ended, Excerpt(ended.tool_response))
            yield ToolFinished(key, ended)
        return answers

    def _ended(self, call: JudgedCall, *, may_read: bool) -> EndedCall:
        if isinstance(call, WaitingCall):
            return EndedCall(call, CallStatus.WAITING, template.WAITS_FOR_APPROVAL)
        if isinstance(call, RejectedCall):
            text = cut_to_size(call.text, self.tools.result_limit)
            return EndedCall(call, CallStatus.REFUSED, text, OurWords("not run"))
        if call.tool.kind is ToolKind.HANDS_OVER:
            return EndedCall(call, CallStatus.OK, template.ACCEPTED)
        if not may_read:
            return EndedCall(call, CallStatus.REFUSED, template.NO_MORE_READING, OurWords("not run"))
        started = self.tools.clock.now()
        reply = read_result(self.transcript.long_results, call.arguments, self.tools.result_limit)
        status = CallStatus.ERROR if reply.error else CallStatus.OK
        return EndedCall(call, status, reply.text, reply.error, self.tools.clock.now() - started)

    def _result(self, answer: Answer) -> Result:
        """The result as the model reads it: with the numbers of its sources, within the limit.

        A whole result that does not fit is kept, and the note in what is shown says how to read on.
        """
        call, limit, whole = answer.ended.call, self.tools.result_limit, answer.whole
        numbers = self.bibliography.add(answer.ended.sources)
        cited = cut_to_size(citation_lines(zip(numbers, answer.ended.sources, strict=True)), limit // 2)
        end = f"\n\n{cited}" if cited else ""
        room = limit - len(end)
        lasting = cut_to_size(whole.text, room, whole.missing) + end
        name = self.transcript.long_results.keep(whole) if len(whole.text) > room else None
        if name is None:
            return Result(call, lasting, lasting)
        note = partial(template.CHARACTERS_TO_READ.format, id=name)
        return Result(call, cut_to_size(whole.text, room, whole.missing, note) + end, lasting)


def _by_key(judged: Iterable[JudgedCall], parent: str) -> dict[str, JudgedCall]:
    """The calls of a turn by their keys in the log, in the model's order."""
    return {f"{parent}.call{position}": call for position, call in enumerate(judged, start=1)}

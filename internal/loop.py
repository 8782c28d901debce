"""The agent's loop: ask, read, answer every call, append, decide.

In: a transcript and what runs its turns and calls. Out: events, and at the end an Ending. The next step is a value of
a closed union; no flag carries control flow. Several loops may run in one run: each has its transcript and guard, they
share the callers, the bibliography and the clock.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import assert_never

from internal.calls.guards import RepeatGuard
from internal.calls.plan import PlannedCall, RejectedCall, plan_calls, plan_submissions
from internal.calls.rounds import REFUSED_AT_THE_END, ToolRounds
from internal.calls.runner import ToolRunner
from internal.calls.submission import Submission, written_out
from internal.conversation.transcript import Transcript
from internal.host.clock import Deadline
from internal.model.display import DisplayRule
from internal.model.reading import ModelTurn, TurnSpan
from internal.model.turn import ModelCaller, TimeIsUp
from internal.report.events import (
    AnswerBreak,
    AnswerText,
    Event,
    SpanFinished,
    SpanStarted,
    StopReason,
    ThoughtText,
)
from internal.report.sentences import working_line
from internal.report.sources import Bibliography
from internal.steps import AnotherRound, ClosingAnswer, Ending, Finish, NextStep, judge_final_turn
from internal.tools.virtual_tools import RESERVED_NAMES
from prompt import template

MIN_CLOSING_SECONDS = 5
"""What the closing answer has even when the rounds took longer than they should have."""


def should_continue(*, iteration: int, maximum_iterations: int, has_tool_call: bool) -> bool:
    """Whether another tool round may follow; ``iteration`` counts the tool rounds done."""
    return has_tool_call and iteration < maximum_iterations


@dataclass
class AgentLoop:
    """Drives one transcript to an answer."""

    models: ModelCaller
    tools: ToolRunner
    transcript: Transcript
    bibliography: Bibliography
    maximum_iterations: int
    show_thoughts: bool
    tool_deadline: Deadline
    """Ends the tool phase."""
    end: Deadline
    """Ends the closing answer."""
    parent: str | None = None
    """The log node that the rounds hang from."""
    submission: Submission | None = None
    """Set when the answer has to be handed over by a call."""
    is_seen: bool = True
    """Whether the user sees what the model says."""
    query: str = ""
    """What the user asked: it suggests the language in which silent rounds are announced."""
    guard: RepeatGuard = field(default_factory=RepeatGuard)
    asked: int = 0
    """Turns asked for, those of an earlier loop under the same log node included."""
    _closings: int = field(default=0, init=False)
    _words: str = field(default="", init=False)
    """The beginning of an answer that never went on; the user has not seen it."""

    @cached_property
    def _rounds(self) -> ToolRounds:
        return ToolRounds(self.tools, self.transcript, self.bibliography, self.guard)

    def run(self) -> Generator[Event, None, Ending]:
        step: NextStep = AnotherRound()
        while True:
            match step:
                case AnotherRound():
                    step = yield from self._round()
                case ClosingAnswer(reason):
                    step = yield from self._closing_answer(reason)
                case Finish(reason, text, submitted):
                    return Ending(reason, text, submitted, self._rounds.done)
                case _:
                    assert_never(step)

    def _round(self) -> Generator[Event, None, NextStep]:
        """Ask; then either the turn is the answer, or its calls are run and appended."""
        self.asked += 1
        span = self._span(f"round{self.asked}", self.tool_deadline, may_call_tools=bool(self.tools.toolbox.tools))
        started = self.models.clock.now()
        yield SpanStarted(span.parent, f"ROUND {self.asked}", self.parent)
        turn = yield from self._ask(span)
        if isinstance(turn, TimeIsUp):
            step: NextStep = ClosingAnswer(StopReason.TIME_LIMIT)
        elif turn.cut or not turn.calls:
            step = self._after_text(turn)
            yield from self._rounds.refuse(turn, span.parent, self.end)
        else:
            planned = plan_calls(turn.calls, self.tools.toolbox, self.guard)
            finish = self._after_submission(planned)
            if finish is not None:
                planned = plan_submissions(turn.calls, self.tools.toolbox, REFUSED_AT_THE_END)
            yield from self._announce(turn)
            yield from self._rounds.run(turn, planned, span.parent, self.tool_deadline)
            step = self._after_tools(planned) if finish is None else finish
        yield SpanFinished(span.parent, self.models.clock.now() - started)
        return step

    def _announce(self, turn: ModelTurn) -> Iterator[Event]:
        """Whoever reads the thoughts sees that work goes on, though the model says nothing."""
        if self.show_thoughts and self.is_seen and not turn.has_shown:
            names = (call.name for call in turn.calls if call.name not in RESERVED_NAMES)
            if line := working_line(names, self.query):
                yield ThoughtText(line)

    def _after_text(self, turn: ModelTurn) -> NextStep:
        """A turn without calls is the answer, unless the answer has to be a call: then it is asked for, once."""
        if self.submission is None or turn.cut:
            return judge_final_turn(turn, StopReason.ANSWERED)
        if self.submission.may_remind():
            self.transcript.append_note(template.SUBMIT_ANSWER_REMINDER)
            return AnotherRound()
        return Finish(StopReason.ANSWER_INVALID, turn.text)

    def _after_submission(self, planned: Sequence[PlannedCall]) -> Finish | None:
        """The end, if the answer was handed over, or was wrong once too often."""
        if self.submission is None:
            return None
        submitted = self.submission.take(planned)
        if submitted is not None:
            return Finish(StopReason.ANSWERED, written_out(submitted), submitted)
        return None if self.submission.may_correct() else Finish(StopReason.ANSWER_INVALID)

    def _after_tools(self, planned: Sequence[PlannedCall]) -> NextStep:
        if any(isinstance(call, RejectedCall) and call.ends_tool_phase for call in planned):
            return ClosingAnswer(StopReason.REPEATED_CALLS)
        if self.tool_deadline.has_passed():
            return ClosingAnswer(StopReason.TIME_LIMIT)
        if should_continue(
            iteration=self._rounds.done, maximum_iterations=self.maximum_iterations, has_tool_call=bool(planned)
        ):
            return AnotherRound()
        return ClosingAnswer(StopReason.ITERATION_LIMIT)

    def _closing_answer(self, reason: StopReason) -> Generator[Event, None, NextStep]:
        """Ask for the answer with the same tools in the prompt, so that its prefix stays; calls are refused."""
        self._closings += 1
        if self._closings == 1:
            note = template.CLOSING_NOTE_FOR_SUBMISSION if self.submission else template.CLOSING_NOTE
            self.transcript.append_note(note)
        name = f"closing{self._closings}" if self._closings > 1 else "closing"
        span = self._span(name, self.end.at_least(MIN_CLOSING_SECONDS), may_call_tools=False)
        started = self.models.clock.now()
        yield SpanStarted(span.parent, "CLOSING ANSWER", self.parent)
        turn = yield from self._ask(span)
        step: NextStep = Finish(reason)
        if isinstance(turn, ModelTurn) and self.submission and not turn.cut:
            step = yield from self._close_by_submission(turn, span, self.submission, reason)
        elif isinstance(turn, ModelTurn):
            step = judge_final_turn(turn, reason)
            yield from self._rounds.refuse(turn, span.parent, self.end)
        has_files = isinstance(turn, ModelTurn) and turn.has_files
        if isinstance(step, Finish) and not step.text and not has_files and self._words:
            step = yield from self._keep_words(reason)
        yield SpanFinished(span.parent, self.models.clock.now() - started)
        return step

    def _keep_words(self, reason: StopReason) -> Generator[Event, None, Finish]:
        """What stalled in its first words is the answer when nothing else came."""
        if self.submission is None:
            yield AnswerBreak()
            yield AnswerText(self._words)
        return Finish(reason, self._words)

    def _close_by_submission(
        self, turn: ModelTurn, span: TurnSpan, submission: Submission, reason: StopReason
    ) -> Generator[Event, None, NextStep]:
        """In the closing answer too, errors go back to the model, and text is answered with a reminder."""
        planned = plan_submissions(turn.calls, self.tools.toolbox, REFUSED_AT_THE_END)
        submitted, is_one = submission.take(planned), submission.is_among(planned)
        if turn.calls:
            yield from self._rounds.run(turn, planned, span.parent, self.end)
        if submitted is not None:
            return Finish(reason, written_out(submitted), submitted)
        if not (submission.may_correct() if is_one else submission.may_remind()):
            return Finish(StopReason.ANSWER_INVALID, turn.text)
        if not turn.calls:
            self.transcript.append_note(template.SUBMIT_ANSWER_REMINDER)
        return ClosingAnswer(reason)

    def _ask(self, span: TurnSpan) -> Generator[Event, None, ModelTurn | TimeIsUp]:
        turn = yield from self.models.take_turn(self.transcript, span)
        if isinstance(turn, TimeIsUp):
            self._words = turn.words or self._words
        elif not turn.calls and not turn.cut:
            self.transcript.append_answer(turn.content, turn.opaque_body)
        return turn

    def _span(self, name: str, deadline: Deadline, *, may_call_tools: bool) -> TurnSpan:
        root = f"{self.parent}.{name}" if self.parent else name
        last_step = self.maximum_iterations + 1
        step = self._rounds.done + 1 if may_call_tools else last_step
        rule = DisplayRule(
            self.show_thoughts,
            may_call_tools,
            step,
            last_step,
            text_is_answer=self.submission is None,
            is_seen=self.is_seen,
        )
        return TurnSpan(f"{root}.model", root, rule, deadline, max(deadline, self.end))

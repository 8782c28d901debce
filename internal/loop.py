"""What a loop has of a run: of its time, its budget, its log and its screen."""

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, assert_never

from internal.budget import Budget
from internal.call import JudgedCall, RejectedCall, ValidCall
from internal.calls.judging import hands_over, judge_calls, waits, within_budget, without_tools
from internal.calls.rounds import ToolRounds
from internal.clock import TOOL_PHASE_SHARE, Deadline
from internal.errors import AgentError, StopReason
from internal.events import AnswerBreak, AnswerText, Event, Remark, SpanFinished, SpanStarted
from internal.model.display import DisplayRule
from internal.model.reading import ModelTurn, TurnSpan
from internal.model.turn import ModelCaller, TimeIsUp
from internal.node.virtual_tools import READ_RESULT, RESERVED_NAMES, read_result_tool
from internal.sentences import tools_line
from prompt import template

# What a loop has of a run: of its time, its budget, its log and its screen.


@dataclass(frozen=True)
class LoopPart:
    """What a loop has of a run: of its time, its log and its screen."""

    tool_share: float = TOOL_PHASE_SHARE
    """Of the run's time, from its beginning; then the tool phase ends."""
    end_share: float = 1
    """Then the closing answer ends."""
    maximum_iterations: int | None = None
    """Rounds in which tools may run, 0 for a closing answer alone; None for as many as the node allows."""
    is_seen: bool = True
    """Whether the user sees what the model says; files are forwarded in any case."""
    subtask: str | None = None
    """What of a plan it works on."""
    parent: str | None = None
    """The key of the log row that its rounds stand below."""
    asked: int = 0
    """Turns that an earlier loop below the same log row asked for."""
    closes_on_budget: bool = True
    """Whether a closing answer follows when the run's budget of tokens or tool calls is reached."""


@dataclass(frozen=True)
class LoopLimits:
    """What ends a loop."""

    maximum_iterations: int
    """Rounds in which tools may run."""
    tool_deadline: Deadline
    """Ends the tool phase."""
    end: Deadline
    """Ends the closing answer."""
    budget: Budget
    """Of the whole run; ends the tool phase, and wins over every other limit."""
    closes_on_budget: bool
    """Whether a closing answer follows when the budget is reached."""


@dataclass(frozen=True)
class Audience:
    """What the user sees of a loop."""

    show_thoughts: bool
    """Never where the user sees nothing of the loop."""
    is_seen: bool = True
    """Whether the user sees what the model says."""
    query: str = ""
    """What the user asked: it suggests the language in which silent rounds are announced."""


# The next steps of a loop, as a closed union of values, and the result of a loop.


@dataclass(frozen=True)
class AnotherRound:
    """The model may call tools once more."""


@dataclass(frozen=True)
class ClosingAnswer:
    """The tool phase is over without an answer: ask for it."""

    reason: StopReason


@dataclass(frozen=True)
class Finish:
    """Nothing more is sent."""

    reason: StopReason
    text: str = ""
    submitted: Mapping[str, Any] | None = None
    """The answer in the requested schema."""
    cut: StopReason | None = None
    """Why the text ends too early."""


type NextStep = AnotherRound | ClosingAnswer | Finish


@dataclass(frozen=True)
class Ending:
    """The result of a loop."""

    reason: StopReason
    text: str
    """The visible text of the last turn; "" when there is none."""
    submitted: Mapping[str, Any] | None
    cut: StopReason | None = None
    """Why the text ends too early: length, content_filter or time_limit."""


# When a loop has its answer: a turn without calls, or, with ``answer_schema``, a valid call of ``submit_answer``.
#
# One object per transcript; the loop asks it the same questions in a round and in the closing answer.

MAX_CORRECTIONS = 2
"""How often errors in an answer that has to be a call go back to the model."""


class AnswerRule(Protocol):
    """What counts as the answer."""

    is_text: bool
    """Whether the model's text is the answer."""
    closing_note: str
    """Tells the model that the answer is due."""
    revision_note: str
    """Tells the model what is wrong with its answer: a template with ``criteria``, ``problems`` and ``look_up``."""
    submissions: int
    """Rounds in which the answer was handed over, validly or not; they are not rounds of tools."""

    def after_text(self, turn: ModelTurn, closing: StopReason | None) -> Finish | str:
        """What follows a turn whose calls, if it has any, do not run; a text is what the model reads next.

        ``closing`` is what ended the tool phase, None while it lasts.
        """

    def after_calls(self, turn: ModelTurn, judged: Sequence[JudgedCall], closing: StopReason | None) -> Finish | None:
        """The end, if the calls of a turn bring it."""

    def again(self) -> "AnswerRule":
        """The rule for an answer that is written again, with all its corrections."""


class TextAnswer:
    """The answer is the text of the first turn without calls."""

    is_text = True
    closing_note = template.CLOSING_NOTE
    revision_note = template.REVISION_NOTE
    submissions = 0

    def after_text(self, turn: ModelTurn, closing: StopReason | None) -> Finish:
        return judge_final_turn(turn, closing or StopReason.ANSWERED)

    def after_calls(self, turn: ModelTurn, judged: Sequence[JudgedCall], closing: StopReason | None) -> None:
        """Calls are never the answer."""

    def again(self) -> "TextAnswer":
        return self


@dataclass
class CallAnswer:
    """The answer is a valid call; errors in it go back to the model, and text is answered with one reminder."""

    is_text = False
    closing_note = template.CLOSING_NOTE_FOR_SUBMISSION
    revision_note = template.REVISION_NOTE_FOR_SUBMISSION
    submissions: int = 0
    _refused: int = 0
    _has_been_reminded: bool = False

    def after_text(self, turn: ModelTurn, closing: StopReason | None) -> Finish | str:
        if turn.cut:
            return judge_final_turn(turn, closing or StopReason.ANSWERED)
        if self._has_been_reminded:
            return Finish(StopReason.ANSWER_INVALID, turn.text)
        self._has_been_reminded = True
        return template.SUBMIT_ANSWER_REMINDER

    def after_calls(self, turn: ModelTurn, judged: Sequence[JudgedCall], closing: StopReason | None) -> Finish | None:
        self.submissions += any(map(hands_over, judged))
        for call in judged:
            if isinstance(call, ValidCall) and hands_over(call):
                return Finish(closing or StopReason.ANSWERED, written_out(call.arguments), call.arguments)
        if any(map(hands_over, judged)):
            self._refused += 1
            is_over = self._refused > MAX_CORRECTIONS
        elif closing:
            # The refusal of the other calls is the reminder.
            is_over = self._has_been_reminded
            self._has_been_reminded = True
        else:
            is_over = False
        return Finish(StopReason.ANSWER_INVALID, turn.text if closing else "") if is_over else None

    def again(self) -> "CallAnswer":
        return CallAnswer()


def judge_final_turn(turn: ModelTurn, reason: StopReason) -> Finish:
    """What was wrong with the final turn itself wins over what ended the tool phase; empty is never a success.

    A closing answer that ran out of time keeps the reason that ended the tool phase.
    """
    if turn.cut is StopReason.TIME_LIMIT and reason is not StopReason.ANSWERED:
        return Finish(reason, turn.text, cut=turn.cut)
    if turn.cut:
        return Finish(turn.cut, turn.text, cut=turn.cut)
    return Finish(StopReason.EMPTY if turn.is_empty else reason, turn.text)


def written_out(answer: Mapping[str, Any]) -> str:
    """The answer as text: JSON that a person can read."""
    return json.dumps(answer, ensure_ascii=False, indent=2)


# The agent's loop: ask, read, answer every call, append, decide.
#
# The next step is a value of a closed union. Several loops may run in one run: each has its transcript and guard,
# they share the callers, the bibliography and the clock.

MIN_CLOSING_SECONDS = 5
"""The closing answer has as much even when the rounds took longer than they should have."""


def should_continue(*, iteration: int, maximum_iterations: int, has_tool_call: bool) -> bool:
    """Whether another tool round may follow; ``iteration`` counts the tool rounds done."""
    return has_tool_call and iteration < maximum_iterations


@dataclass
class AgentLoop:
    """Drives one transcript to an answer."""

    models: ModelCaller
    rounds: ToolRounds
    answer: AnswerRule
    limits: LoopLimits
    audience: Audience
    parent: str | None = None
    """The key of the log row that the rounds stand below."""
    subtask: str | None = None
    """What of a plan it works on."""
    asked: int = 0
    """Rounds begun, those of an earlier loop below the same log row included."""
    holds_answer: bool = False
    """Whether the text of an answer waits for a judgement, and is not shown; that of a closing answer never waits."""
    _closings: int = field(default=0, init=False)
    _first_words: str = field(default="", init=False)
    """The beginning of an answer that never went on; the user has not seen it."""

    def run(self) -> Generator[Event, None, Ending]:
        has_rounds = self.limits.maximum_iterations > 0
        first: NextStep = AnotherRound() if has_rounds else ClosingAnswer(StopReason.ITERATION_LIMIT)
        step = self._within_budget(first)
        while True:
            match step:
                case AnotherRound():
                    self.asked += 1
                    step = yield from self._take_turn(f"round{self.asked}", f"ROUND {self.asked}", None)
                case ClosingAnswer(reason):
                    step = yield from self._closing_answer(reason)
                case Finish(reason, text, submitted, cut):
                    return Ending(reason, text, submitted, cut)
                case _:
                    assert_never(step)

    def revise(self, note: str) -> Generator[Event, None, Ending]:
        """Have the answer written again within what is left of the limits; the note tells the model why.

        Calls that handed over the answer before were not calls of tools, so they give their rounds back.
        """
        rounds = self.limits.maximum_iterations + self.answer.submissions
        self.limits = replace(self.limits, maximum_iterations=rounds)
        self.answer = self.answer.again()
        self.rounds.transcript.append_note(note)
        return (yield from self.run())

    def _closing_answer(self, reason: StopReason) -> Generator[Event, None, NextStep]:
        """Ask for the answer with the same tools in the prompt, so that its prefix stays; calls of them are refused."""
        self._closings += 1
        if self._closings == 1:
            self.rounds.transcript.append_note(self.answer.closing_note)
        name = "closing" if self._closings == 1 else f"closing{self._closings}"
        return (yield from self._take_turn(name, "CLOSING ANSWER", reason))

    def _take_turn(self, name: str, label: str, closing: StopReason | None) -> Generator[Event, None, NextStep]:
        """Ask, answer the calls, decide; ``closing`` is what ended the tool phase, None while it lasts."""
        self._offer_reading()
        span = self._span(name, is_closing=closing is not None)
        if closing is None and (note := self.limits.budget.note(self.rounds.transcript)):
            self.rounds.transcript.append_note(note)
        started = self.models.clock.now()
        yield SpanStarted(span.round_key, label, is_round=closing is None)
        try:
            turn = yield from self.models.take_turn(self.rounds.transcript, span)
        except AgentError as failure:
            yield SpanFinished(span.round_key, self.models.clock.now() - started, error=failure.detail)
            raise
        if isinstance(turn, TimeIsUp):
            self._first_words = turn.words or self._first_words
            step = Finish(closing) if closing else self._within_budget(ClosingAnswer(StopReason.TIME_LIMIT))
        else:
            step = yield from self._after_turn(turn, span, closing)
        has_files = isinstance(turn, ModelTurn) and turn.has_files
        if closing and isinstance(step, Finish) and not step.text and not has_files and self._first_words:
            step = yield from self._keep_first_words(closing)
        yield SpanFinished(span.round_key, self.models.clock.now() - started)
        return step

    def _offer_reading(self) -> None:
        """From the first cut result of the conversation on, the model may read on in it."""
        if self.rounds.transcript.long_results.ids and READ_RESULT not in self.models.toolbox.tools:
            self.models = self.models.offering(read_result_tool())

    def _after_turn(
        self, turn: ModelTurn, span: TurnSpan, closing: StopReason | None
    ) -> Generator[Event, None, NextStep]:
        """Answer every call of the turn, append both, and decide."""
        transcript, toolbox = self.rounds.transcript, self.models.toolbox
        if turn.cut or not turn.calls or (closing and self.answer.is_text):
            if not turn.calls and not turn.cut:
                transcript.append_answer(turn.content, turn.opaque_body)
            verdict = self.answer.after_text(turn, closing)
            yield from self.rounds.refuse(turn, span)
            if isinstance(verdict, Finish):
                return verdict
            transcript.append_note(verdict)
            return ClosingAnswer(closing) if closing else self._within_budget(AnotherRound())
        judged = judge_calls(turn.calls, toolbox, self.rounds.guard)
        if closing is None:
            judged = self.rounds.approvals.hold(judged, toolbox, self.subtask)
        finish = None if waits(judged) else self.answer.after_calls(turn, judged, closing)
        if closing is None:
            yield from self._announce(turn)
        deadline = self.limits.end if closing else self.limits.tool_deadline
        allowed = without_tools(judged) if closing or finish else within_budget(judged, self.limits.budget)
        yield from self.rounds.run(turn, allowed, span, deadline)
        if waits(judged):
            return Finish(StopReason.APPROVAL_REQUIRED)
        return finish or (ClosingAnswer(closing) if closing else self._within_budget(self._after_tools(judged)))

    def _after_tools(self, judged: Sequence[JudgedCall]) -> NextStep:
        if any(isinstance(call, RejectedCall) and call.ends_tool_phase for call in judged):
            return ClosingAnswer(StopReason.REPEATED_CALLS)
        if self.limits.tool_deadline.has_passed():
            return ClosingAnswer(StopReason.TIME_LIMIT)
        iterations = self.limits.maximum_iterations
        if should_continue(iteration=self.rounds.done, maximum_iterations=iterations, has_tool_call=bool(judged)):
            return AnotherRound()
        return ClosingAnswer(StopReason.ITERATION_LIMIT)

    def _within_budget(self, step: NextStep) -> NextStep:
        """This step of the tool phase, or what ends it when the run's budget is reached."""
        reason = self.limits.budget.reached()
        if reason is None:
            return step
        return ClosingAnswer(reason) if self.limits.closes_on_budget else Finish(reason, self._first_words)

    def _announce(self, turn: ModelTurn) -> Iterator[Event]:
        """Where thoughts are shown, the user reads which tools were used even if the model says nothing."""
        if self.audience.show_thoughts and not turn.has_shown:
            names = (call.name for call in turn.calls if call.name not in RESERVED_NAMES)
            if line := tools_line(names, self.audience.query):
                yield Remark(line)

    def _keep_first_words(self, reason: StopReason) -> Generator[Event, None, Finish]:
        """An answer that stalled in its first words is the answer when nothing else came."""
        if self.answer.is_text and self.audience.is_seen:
            yield AnswerBreak()
            yield AnswerText(self._first_words)
        return Finish(reason, self._first_words, cut=StopReason.TIME_LIMIT)

    def _span(self, name: str, *, is_closing: bool) -> TurnSpan:
        """Where the next turn stands in the log, on the screen and in time."""
        key = f"{self.parent}.{name}" if self.parent else name
        last_step = self.limits.maximum_iterations + 1
        rule = DisplayRule(
            self.audience.show_thoughts,
            step=last_step if is_closing or not self.models.toolbox.tools else self.rounds.done + 1,
            last_step=last_step,
            text_is_answer=self.answer.is_text,
            is_seen=self.audience.is_seen,
            holds_answer=self.holds_answer and not is_closing,
            may_ask=self.models.toolbox.asks_first,
        )
        end = self.limits.end
        deadline = end.at_least(MIN_CLOSING_SECONDS) if is_closing else self.limits.tool_deadline
        return TurnSpan(f"{key}.model", key, rule, deadline, max(deadline, end), self.asked + is_closing)

"""The agent's loop (ask, read, answer every call, append, decide), and the definition of an answer."""

import json
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from internal.call import JudgedCall, RejectedCall, ToolOutcome, ValidCall
from internal.calls.judging import ArgumentsInvalid, hands_over, validate_arguments, waits, without_tools
from internal.calls.runner import ToolRounds
from internal.clock import TOOL_PHASE_SHARE, Deadline
from internal.errors import OurWords, Quoting, StopReason
from internal.events import AgentThought, AnswerBreak, AnswerText, Event, LogNote, SpanStarted, in_row
from internal.model.display import DisplayRule
from internal.model.reading import ModelTurn, TurnSpan
from internal.model.turn import ModelCaller, TimeIsUp
from internal.node.tools import Tool
from internal.node.virtual_tools import SUBMIT_ANSWER
from internal.text.language import language_of
from internal.tooling import UnwritableError, refuse_unwritable
from internal.transcript.steps import AgentNote, AssistantText
from prompt import template, user_texts

_MAX_NAMES = 3
"""Maximum number of tools in the line that lists the used tools."""


@dataclass(frozen=True)
class LoopPart:
    """The part of a run that a loop may use: its share of the time, its place in the log and on the screen."""

    tool_share: float = TOOL_PHASE_SHARE
    """Share of the run's time after which the tool phase ends."""
    end_share: float = 1
    """Share of the run's time after which the closing answer ends."""
    maximum_iterations: int | None = None
    """Maximum number of rounds in which tools may run. 0 allows only a closing answer, and None means the node's
    limit."""
    is_seen: bool = True
    """Whether the user sees the model's text. Files are forwarded in any case."""
    subtask: str | None = None
    """The subtask of a plan, if the loop works on one. Such a loop has no closing answer when the budget is reached."""
    parent: str | None = None
    """The key of the log row above its rounds."""
    rounds_before: int = 0
    """Number of rounds in earlier loops of the same subtask or the same answer."""


# The next steps of a loop.


@dataclass(frozen=True)
class AnotherRound:
    """The model may call tools once more."""


@dataclass(frozen=True)
class ClosingAnswer:
    """The tool phase has ended without an answer, so the model is asked for it."""

    reason: StopReason


@dataclass(frozen=True)
class Finish:
    """The loop has ended with this result."""

    reason: StopReason
    text: str = ""
    """The visible text of the last turn, or if calls wait, the part that the user has not seen; "" if there is none."""
    submitted: Mapping[str, Any] | None = None
    """The answer in the requested schema."""
    cut: StopReason | None = None
    """The reason why the text ends too early: length, content_filter or time_limit."""
    tool_answers: Sequence[ToolOutcome] = ()
    """The outcomes of answer tools, if they are the answer."""


type NextStep = AnotherRound | ClosingAnswer | Finish

MAX_CORRECTIONS = 2
"""Maximum number of times that the model may correct an answer that must be a call (docs/answer-schema.md)."""
MIN_CLOSING_SECONDS = 5
"""Minimum seconds for the closing answer with its corrections, even if the rounds took too long."""


@dataclass
class Answer:
    """Decides what counts as the answer: the text of the first turn without calls, or a valid ``submit_answer`` call.

    Errors in such a call are reported to the model, and a text instead of a call is answered with one reminder. In both
    cases, the results of the node's answer tools also count as the answer.
    """

    submit: Tool | None
    """The tool that takes the answer; None if the answer is text."""
    is_of_subtask: bool = False
    has_been_told: bool = False
    """Whether the model was told that calls written as text do not run, so that another such call ends the loop."""
    submissions: int = field(default=0, init=False)
    """Number of rounds with a submitted answer, valid or invalid, which are not tool rounds."""
    _has_been_reminded: bool = field(default=False, init=False)

    @property
    def is_text(self) -> bool:
        return self.submit is None

    def after_text(self, turn: ModelTurn, closing: StopReason | None) -> Finish | str:
        """Return the result after a turn without calls that run, or else a text that the model reads next.

        ``closing`` is the reason that ended the tool phase; None while it lasts. A fault of the turn itself takes
        precedence over it, unless a closing answer ran out of time. An empty turn is never a success.
        """
        if turn.has_unparsed and not (turn.cut or (closing and self.is_text)):
            if self.has_been_told:
                return Finish(StopReason.UNPARSED_CALL, turn.text)
            self.has_been_told = True
            return template.UNPARSED_CALL
        if not (self.is_text or turn.cut):
            if self._has_been_reminded:
                return Finish(StopReason.ANSWER_INVALID, turn.text)
            self._has_been_reminded = True
            return template.SUBMIT_ANSWER_REMINDER
        reason = closing or StopReason.ANSWERED
        if turn.cut:
            if not (closing and turn.cut is StopReason.TIME_LIMIT):
                reason = turn.cut
        elif turn.is_empty:
            reason = StopReason.EMPTY
        return Finish(reason, turn.text, cut=turn.cut)

    def after_calls(self, turn: ModelTurn, judged: Sequence[JudgedCall], closing: StopReason | None) -> Finish | None:
        """Return the result if the calls of a turn contain the answer, or if no correction is left; otherwise None."""
        submitted = [call for call in judged if hands_over(call)]
        self.submissions += bool(submitted)
        for call in submitted:
            if isinstance(call, ValidCall):
                written = json.dumps(call.arguments, ensure_ascii=False, indent=2)
                return Finish(closing or StopReason.ANSWERED, written, call.arguments)
        is_over = bool(submitted) and self.submissions > MAX_CORRECTIONS
        if closing and not submitted:  # the refusals of the other calls serve as the reminder
            is_over = self._has_been_reminded
            self._has_been_reminded = True
        if is_over:
            return Finish(StopReason.ANSWER_INVALID, turn.text if closing else "")
        return None

    def after_tools(self, outcomes: Sequence[ToolOutcome]) -> Finish | str:
        """Return the result with the outcomes of answer tools, or a text for the model that says why they do not fit.

        There must be at least one outcome.
        """
        texts = (each.record_text if self.is_of_subtask else each.user_text for each in outcomes)
        text = "\n\n".join(filter(None, texts))
        finish = Finish(StopReason.ANSWERED, text, tool_answers=outcomes)
        if self.submit is None:
            return replace(finish, submitted=_one_object([value for each in outcomes for value in each.json_values]))
        problems = []
        for each in outcomes:
            try:
                if (value := _one_object(each.json_values)) is not None:
                    return replace(finish, submitted=validate_arguments(self.submit, value))
                problem = template.NO_SINGLE_OBJECT
            except ArgumentsInvalid as invalid:
                problem = str(invalid)
            problems.append(template.TOOL_ANSWER_UNFIT.format(tool=each.call.name, problem=problem))
        return "\n".join(problems)


def _one_object(values: Sequence[Any]) -> Mapping[str, Any] | None:
    """Return the only value if it is an object that can be output; otherwise None."""
    with suppress(UnwritableError):
        if len(values) == 1 and isinstance(values[0], dict):
            refuse_unwritable(values[0])
            return values[0]
    return None


def should_continue(*, iteration: int, maximum_iterations: int, has_tool_call: bool) -> bool:
    """Return whether another tool round may follow. ``iteration`` is the number of completed tool rounds."""
    return has_tool_call and iteration < maximum_iterations


@dataclass
class AgentLoop:
    """Works on one transcript until there is an answer. A run may have several loops."""

    models: ModelCaller
    rounds: ToolRounds
    part: LoopPart
    maximum_iterations: int
    tool_deadline: Deadline
    end: Deadline
    show_thoughts: bool
    words: str
    """The user's text, which determines the language in which silent rounds are announced."""
    before: Generator[Event, None, Sequence[ToolOutcome]] | None = None
    """Generator that answers the calls which an earlier run left waiting in this transcript."""
    rounds_begun: int = field(init=False)
    """Number of started rounds, including those of earlier loops that the part counts."""
    answer: Answer = field(init=False)
    _is_draft: bool = field(default=False, init=False)
    _closings: int = field(default=0, init=False)
    _closing_end: Deadline | None = field(default=None, init=False)
    """The deadline of the closing answer with all its corrections; None before it."""
    _first_words: str = field(default="", init=False)
    """The beginning of an interrupted answer, which the user has not seen."""

    def __post_init__(self) -> None:
        """Set up the answer, which must be a call if the toolbox has the tool that takes the answer."""
        self.rounds_begun = self.part.rounds_before
        self.answer = self._new_answer()

    def _new_answer(self) -> Answer:
        submit = self.models.toolbox.tools.get(SUBMIT_ANSWER)
        return Answer(submit, self.part.subtask is not None, self.models.models.writes_calls)

    def run(self, *, is_draft: bool = False) -> Generator[Event, None, Finish]:
        """Ask until there is an answer. The text of a draft is not shown, except in a closing answer."""
        self._is_draft = is_draft
        before = self.before
        self.before = None
        tool_answers: Sequence[ToolOutcome] = ()
        if before:
            tool_answers = yield from before
        if finish := (yield from self._take(tool_answers, self.part.parent)):
            return finish
        has_rounds = self.maximum_iterations > 0
        first: NextStep = AnotherRound() if has_rounds else ClosingAnswer(StopReason.ITERATION_LIMIT)
        step = self._within_budget(first)
        while not isinstance(step, Finish):
            step = yield from self._take_turn(step.reason if isinstance(step, ClosingAnswer) else None)
        return step

    def revise(self, note: str, *, is_draft: bool) -> Generator[Event, None, Finish]:
        """Have the model rewrite the answer within the remaining limits. The note tells the model the reason.

        Earlier calls that submitted an answer were not tool calls, so they do not count as rounds.
        """
        self.maximum_iterations += self.answer.submissions
        self.answer = replace(self.answer)  # restarts its counts, but keeps what the model was told
        self.rounds.transcript.append(AgentNote(note))
        return (yield from self.run(is_draft=is_draft))

    @property
    def runs_tools(self) -> bool:
        return any(tool.runs for tool in self.models.toolbox.tools.values())

    def _take_turn(self, closing: StopReason | None) -> Generator[Event, None, NextStep]:
        """Run one turn, and show it as a row of the log.

        ``closing`` is the reason that ended the tool phase; None while it lasts.

        The prompt of the closing answer offers the same tools to keep its prefix unchanged, but calls are refused.
        """
        transcript = self.rounds.transcript
        self.models = self.models.offering(self.models.toolbox.offering(transcript.offered))
        note = None
        if closing is None:
            self.rounds_begun += 1
            name = f"round{self.rounds_begun}"
            label = f"ROUND {self.rounds_begun}"
            if self.runs_tools:
                note = self.models.budget.note(transcript)
        else:
            self._closings += 1
            name = f"closing{self._closings if self._closings > 1 else ''}"
            label = "CLOSING ANSWER"
            if self._closings == 1:
                note = template.CLOSING_NOTE_FOR_SUBMISSION
                if self.answer.is_text:
                    note = template.CLOSING_NOTE
        if note:
            transcript.append(AgentNote(note))
        span = self._span(name, is_closing=closing is not None)
        row = SpanStarted(span.round_key, label, is_round=closing is None)
        return (yield from in_row(row, self._turn(span, closing), self.models.clock))

    def _turn(self, span: TurnSpan, closing: StopReason | None) -> Generator[Event, None, NextStep]:
        """Ask, answer the calls, decide."""
        turn = yield from self.models.take_turn(self.rounds.transcript, span)
        step: NextStep
        if isinstance(turn, ModelTurn):
            step = yield from self._after_turn(turn, span, closing)
        else:
            step = self._after_time(turn, closing)
        has_files = isinstance(turn, ModelTurn) and turn.has_files
        if closing and isinstance(step, Finish) and not step.text and not has_files and self._first_words:
            if self.answer.is_text and self.part.is_seen:
                yield AnswerBreak()
                yield AnswerText(self._first_words)
            return Finish(closing, self._first_words, cut=StopReason.TIME_LIMIT)
        return step

    def _after_time(self, late: TimeIsUp, closing: StopReason | None) -> NextStep:
        """Remember the text that arrived before the time limit, and decide."""
        self._first_words = late.words or self._first_words
        if closing:
            return Finish(closing)
        return self._within_budget(ClosingAnswer(StopReason.TIME_LIMIT))

    def _after_turn(
        self, turn: ModelTurn, span: TurnSpan, closing: StopReason | None
    ) -> Generator[Event, None, NextStep]:
        """Append the turn and the reply to it, and decide."""
        if turn.cut is StopReason.SIZE_LIMIT and not closing and not (turn.text and self.answer.is_text):
            yield from self.rounds.refuse(turn, span)
            return self._within_budget(ClosingAnswer(turn.cut))
        if turn.cut or not turn.calls or (closing and self.answer.is_text):
            return (yield from self._after_text(turn, span, closing))
        return (yield from self._after_calls(turn, span, closing))

    def _after_text(
        self, turn: ModelTurn, span: TurnSpan, closing: StopReason | None
    ) -> Generator[Event, None, NextStep]:
        """Accept the text of a turn as the answer, or tell the model why not. No call of the turn runs."""
        transcript = self.rounds.transcript
        if not turn.calls and not turn.cut:
            transcript.append(AssistantText(turn.content, turn.opaque_body))
        verdict = self.answer.after_text(turn, closing)
        yield from self.rounds.refuse(turn, span)
        if isinstance(verdict, Finish):
            self.models.models.writes_calls |= verdict.reason is StopReason.UNPARSED_CALL
            return verdict
        transcript.append(AgentNote(verdict))
        if closing:
            return ClosingAnswer(closing)
        return self._within_budget(AnotherRound())

    def _after_calls(
        self, turn: ModelTurn, span: TurnSpan, closing: StopReason | None
    ) -> Generator[Event, None, NextStep]:
        """Check every call of a turn, run those that may run, and append their results."""
        deadline = self.tool_deadline
        if closing:
            deadline = self.end
        judged = self.rounds.judge_turn(turn, self.models.toolbox, deadline)
        if closing is None:
            judged = self.rounds.approvals.hold(judged, self.models.toolbox, self.part.subtask)
            yield from self._name_tools(turn, judged)
        if waits(judged):
            yield from self.rounds.run(turn, judged, span, deadline)
            return Finish(StopReason.APPROVAL_REQUIRED, turn.held_back)
        finish = self.answer.after_calls(turn, judged, closing)
        allowed = judged
        if closing or finish:
            allowed = without_tools(judged)
        tool_answers = yield from self.rounds.run(turn, allowed, span, deadline)
        finish = finish or (yield from self._take(tool_answers, span.round_key))
        if finish:
            return finish
        if closing:
            return ClosingAnswer(closing)
        return self._within_budget(self._after_tools(judged))

    def _name_tools(self, turn: ModelTurn, judged: Sequence[JudgedCall]) -> Iterator[Event]:
        """Announce the tools of a round in which the model says nothing, if thoughts are shown."""
        if self.show_thoughts and not turn.has_shown:
            used = (each.tool.name for each in judged if each.tool and each.tool.runs)
            if line := tools_line(used, self.words):
                yield AgentThought(line)

    def _take(self, tool_answers: Sequence[ToolOutcome], row: str | None) -> Generator[Event, None, Finish | None]:
        """Return the result if there are outcomes of answer tools. If they do not fit, the model reads the reason."""
        if not tool_answers:
            return None
        verdict = self.answer.after_tools(tool_answers)
        if isinstance(verdict, Finish):
            for each in tool_answers:
                yield LogNote(OurWords("its result is the answer, since answer_tools names it").of(each.call.name), row)
            return verdict
        yield LogNote(Quoting(verdict), row)
        self.rounds.transcript.append(AgentNote(verdict))
        return None

    def _after_tools(self, judged: Sequence[JudgedCall]) -> NextStep:
        if any(isinstance(call, RejectedCall) and call.ends_tool_phase for call in judged):
            return ClosingAnswer(StopReason.REPEATED_CALLS)
        if self.tool_deadline.has_passed():
            return ClosingAnswer(StopReason.TIME_LIMIT)
        most = self.maximum_iterations
        if should_continue(iteration=self.rounds.done, maximum_iterations=most, has_tool_call=bool(judged)):
            return AnotherRound()
        return ClosingAnswer(StopReason.ITERATION_LIMIT)

    def _within_budget(self, step: NextStep) -> NextStep:
        """Return this step of the tool phase, or the step that ends the phase if the run's budget is reached."""
        reason = None
        if self.runs_tools:
            reason = self.models.budget.reached()
        if reason is None:
            return step
        if self.part.subtask:
            return Finish(reason, self._first_words)
        return ClosingAnswer(reason)

    def _span(self, name: str, *, is_closing: bool) -> TurnSpan:
        """Return the place of the next turn in the log and on the screen, and its deadlines."""
        key = name
        if self.part.parent:
            key = f"{self.part.parent}.{name}"
        last_step = self.maximum_iterations + 1
        rule = DisplayRule(
            self.show_thoughts,
            step=last_step if is_closing or not self.models.toolbox.tools else self.rounds.done + 1,
            last_step=last_step,
            text_is_answer=self.answer.is_text,
            is_seen=self.part.is_seen,
            holds_answer=self._is_draft and not is_closing,
            may_ask=self.models.toolbox.asks_first,
            may_bring=self.models.toolbox.may_bring_answer,
            ends_at_unparsed=self.answer.has_been_told,
        )
        deadline = self.tool_deadline
        if is_closing:
            self._closing_end = self._closing_end or self.end.at_least(MIN_CLOSING_SECONDS)
            deadline = self._closing_end
        return TurnSpan(f"{key}.model", key, rule, deadline, max(deadline, self.end), self.rounds_begun + is_closing)


def tools_line(tools: Iterable[str], words: str) -> str:
    """Return a line with the first few of these tools, without duplicates; "" if there are none."""
    language = language_of(words)
    names = list(dict.fromkeys(tools))
    if not names:
        return ""
    listed = user_texts.NAME_SEPARATOR[language].join(names[:_MAX_NAMES])
    sentences = user_texts.MORE_TOOLS_USED
    if len(names) <= _MAX_NAMES:
        sentences = user_texts.TOOLS_USED
    return sentences[language].format(tools=listed, more=len(names) - _MAX_NAMES)

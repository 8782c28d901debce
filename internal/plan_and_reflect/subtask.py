"""One subtask of a plan: attempts, each its own loop, until a judgement says that it is completed.

In: the subtask and the whole plan. Out: events for the log, then a SubtaskOutcome. All attempts share a transcript and
its guard. Before the next attempt, the tool results of the last one become one-line notes.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from internal.answer import TextAnswer
from internal.asking import ask_for_call
from internal.calls.judging import RepeatGuard
from internal.conversation.quoted_results import quoted_result
from internal.conversation.shortening import without_result
from internal.conversation.transcript import Transcript
from internal.errors import AgentError
from internal.host.clock import Deadline
from internal.loop import AgentLoop
from internal.part import LoopPart
from internal.plan_and_reflect.outcome import SubtaskOutcome
from internal.plan_and_reflect.params import PlanAndReflectParams
from internal.report.events import (
    Event,
    Noted,
    SpanFinished,
    SpanStarted,
    StopReason,
)
from internal.report.sources import escaped
from internal.run import Run
from internal.state.records import AnswerRecord, RoundRecord, SubtaskRecord, UserRecord
from internal.steps import Ending
from internal.text.notes import OurWords
from internal.tools.toolbox import Toolbox
from internal.tools.virtual_tools import reflection_tool
from prompt import template

TOOLS_SHARE = 0.7
"""Of the run's time: until then subtasks may call tools."""
SUBTASKS_SHARE = 0.85
"""Until then they must have an answer; the rest of the time is for the final answer."""
_CUT_SHORT = frozenset({StopReason.TIME_LIMIT, StopReason.TOKEN_LIMIT, StopReason.CALL_LIMIT})


@dataclass(frozen=True)
class _Judgement:
    is_completed: bool
    advice: str | None
    """None without a judgement."""


@dataclass
class SubtaskWorker:
    """Works on one subtask."""

    run: Run[PlanAndReflectParams]
    plan: Sequence[str]
    number: int
    """From 1; its place in the plan."""
    begun: SubtaskRecord | None = None
    """What an earlier run has of it."""
    _advised: list[str] = field(default_factory=list, init=False)
    _nearest: str = field(default="", init=False)
    """The best answer so far among those that were not accepted."""
    _attempts: int = field(default=0, init=False)
    _rounds_before: int = field(default=0, init=False)
    """Rounds in earlier runs."""
    _loops: list[AgentLoop] = field(default_factory=list, init=False)
    """Of the attempts in this run."""
    _transcript: Transcript | None = field(default=None, init=False)
    _opened: int = field(default=0, init=False)
    """Messages before the attempt that the transcript began with."""

    def __post_init__(self) -> None:
        """Go on from what an earlier run has."""
        if self.begun is not None:
            self._advised, self._nearest = list(self.begun.advised), self.begun.nearest
            self._attempts, self._rounds_before = self.begun.attempts, self.begun.rounds

    @property
    def key(self) -> str:
        return f"subtask{self.number}"

    @property
    def name(self) -> str:
        return self.plan[self.number - 1]

    @property
    def _restored(self) -> int:
        """Messages of the attempt that an earlier run left open; its conversation has answers of earlier ones alone."""
        entries = self.begun.entries[:-1] if self.begun else ()
        of_attempt = takewhile(lambda entry: not isinstance(entry, AnswerRecord), reversed(entries))
        return sum(1 + len(entry.calls) if isinstance(entry, RoundRecord) else 1 for entry in of_attempt)

    @property
    def _numbered_plan(self) -> str:
        return "\n".join(f"{number}. {escaped(name)}" for number, name in enumerate(self.plan, start=1))

    def work(self) -> Generator[Event, None, SubtaskOutcome]:
        """Attempt until completed, out of attempts, out of time, out of advice, or until the run's budget is reached.

        Then neither a closing answer nor a judgement follows. Nor does either while calls wait.
        """
        if self.begun is not None and not self.begun.entries:
            return self.outcome(self.begun.answer, completed=self.begun.completed)
        transcript, guard = self._open(), RepeatGuard()
        self._transcript, self._opened = transcript, transcript.length - self._restored
        waiting = self.begun.entries[-1] if self.begun else None
        while (reached := self.run.budget.reached()) is None:
            self._attempts += waiting is None
            key = f"{self.key}.attempt{self._attempts}"
            started = self.run.clock.now()
            yield SpanStarted(key, f"ATTEMPT {self._attempts}")
            length_before = self._opened if waiting else transcript.length
            loop = self._loop(transcript, guard, key)
            self._loops.append(loop)
            if isinstance(waiting, RoundRecord):
                yield from self.run.resume(loop, waiting, f"{key}.approval")
            waiting = None
            ending = yield from loop.run()
            if ending.reason is StopReason.APPROVAL_REQUIRED:
                yield SpanFinished(key, self.run.clock.now() - started)
                return replace(self.outcome(template.WAITS_FOR_APPROVAL), waits=True)
            results = transcript.results_since(length_before)
            if reached := self.run.budget.reached():
                yield SpanFinished(key, self.run.clock.now() - started)
                return self._stopped(ending, results, reached)
            judgement = yield from self._judge(ending, results, key)
            yield SpanFinished(key, self.run.clock.now() - started)
            if judgement.is_completed:
                return self.outcome(ending.text, completed=True)
            self._keep(ending)
            if self._attempts >= self.run.params.maximum_attempts or not self._may_go_on(judgement):
                late = ending.reason is StopReason.TIME_LIMIT or self.run.deadline(TOOLS_SHARE).has_passed()
                return self.incomplete(template.SUBTASK_NOT_FOUND, StopReason.TIME_LIMIT if late else None)
            self._advise(transcript, ending.text, judgement.advice)
        end = self.broken_off if waiting else self.incomplete
        return end(template.SUBTASK_STOPPED, reached)

    def _open(self) -> Transcript:
        """Its conversation, from the request on, or as an earlier run left it."""
        if self.begun is not None:
            return self.run.resumed(self.begun.entries[:-1])
        request = template.SUBTASK_REQUEST.format(
            task=escaped(self.run.dialogue.task), plan=self._numbered_plan, subtask=escaped(self.name)
        )
        return self.run.transcript(request)

    def _loop(self, transcript: Transcript, guard: RepeatGuard, key: str) -> AgentLoop:
        """The same rounds as in every strategy; the user does not see what the model says in them."""
        return self.run.loop(
            self.run.models(self.run.toolbox),
            transcript,
            TextAnswer(),
            LoopPart(TOOLS_SHARE, SUBTASKS_SHARE, is_seen=False, subtask=self.name, parent=key, closes_on_budget=False),
            guard,
        )

    def record(self, outcome: SubtaskOutcome) -> SubtaskRecord:
        """What a later run needs of it, which goes on if calls wait."""
        entries = tuple(self._transcript.record[len(self.run.dialogue.earlier) :]) if self._transcript else ()
        return SubtaskRecord(
            name=self.name,
            answer="" if outcome.waits else outcome.answer,
            completed=outcome.completed,
            attempts=outcome.attempts,
            rounds=outcome.rounds,
            advised=tuple(self._advised),
            nearest=self._nearest,
            entries=entries if outcome.waits else (),
        )

    def _judge(self, ending: Ending, results: Sequence[str], key: str) -> Generator[Event, None, _Judgement]:
        """Have the model judge the answer by the tool results; without a judgement it is not completed."""
        earlier = "".join(template.EARLIER_ADVICE.format(advice=escaped(advice)) for advice in self._advised)
        shown = [escaped(quoted_result(result)) for result in results]
        request = template.REFLECTION_REQUEST.format(
            plan=self._numbered_plan,
            results="\n\n".join(shown) or template.NO_RESULTS,
            answer=escaped(ending.text),
            subtask=escaped(self.name),
            earlier=earlier,
        )
        tool, node = reflection_tool(), f"{key}.reflection"
        started = self.run.clock.now()
        yield SpanStarted(node, "REFLECTION")
        models, error = self.run.models(Toolbox({tool.name: tool})), None
        try:
            reply = yield from ask_for_call(models, self.run.transcript(request), tool, node, self._end)
        except AgentError as failure:  # the findings of the subtask are kept
            reply, error = None, failure.detail
        if reply is None:
            yield Noted(OurWords("no judgement came; the subtask counts as not completed"), node)
        data = dict(reply or {"is_completed": False, "advice": ""})
        yield SpanFinished(node, self.run.clock.now() - started, data, error)
        if reply is None:
            return _Judgement(is_completed=False, advice=None)
        return _Judgement(bool(data["is_completed"]) and bool(ending.text), str(data["advice"]).strip())

    def _keep(self, ending: Ending) -> None:
        """Remember the answer in place of the one before; one that a limit cut short is added to it."""
        before = f"{self._nearest}\n\n" if self._nearest and ending.reason in _CUT_SHORT else ""
        if ending.text:
            self._nearest = f"{before}{ending.text}"

    def _may_go_on(self, judgement: _Judgement) -> bool:
        """Whether another attempt makes sense: there is time, and the advice for it is new.

        A missing judgement does not count as repeated advice.
        """
        given = {_gist(advice) for advice in self._advised}
        is_new = judgement.advice is None or _gist(judgement.advice or template.DEFAULT_ADVICE) not in given
        return is_new and not self.run.deadline(TOOLS_SHARE).has_passed()

    def _advise(self, transcript: Transcript, answer: str, advice: str | None) -> None:
        self._advised.append(advice or template.DEFAULT_ADVICE)
        note = template.ADVICE_NOTE.format(advice=escaped(self._advised[-1]))
        transcript.shorten(without_result)
        transcript.append_note(note)
        transcript.record += [AnswerRecord(text=answer), UserRecord(text=note)]

    def _stopped(self, ending: Ending, results: Sequence[str], limit: StopReason) -> SubtaskOutcome:
        """The outcome when the run's budget is reached; without a text, what the tools brought is not lost."""
        self._keep(ending)
        unread = () if ending.text else self._findings(results)
        return replace(self.incomplete(template.SUBTASK_STOPPED, limit), unread=unread)

    def broken_off(self, sentence: str, limit: StopReason | None = None) -> SubtaskOutcome:
        """The outcome when the model failed or time ran out; what the tools brought is not lost."""
        results = self._transcript.results_since(self._opened) if self._transcript else ()
        return replace(self.incomplete(sentence, limit), unread=self._findings(results))

    def _findings(self, results: Sequence[str]) -> tuple[str, ...]:
        """The results without those that say only why there is none."""
        refusals = map(self.run.budget.refusal, (StopReason.TOKEN_LIMIT, StopReason.CALL_LIMIT))
        left_out = {template.ELIDED_TOOL_RESULT, *refusals}
        return tuple(result for result in results if result not in left_out)

    def incomplete(self, sentence: str, limit: StopReason | None = None) -> SubtaskOutcome:
        """The outcome of a subtask without an accepted answer; it quotes the best attempt."""
        nearest = template.NEAREST.format(answer=self._nearest) if self._nearest else ""
        return replace(self.outcome(f"{sentence}{nearest}"), limit=limit)

    def outcome(self, answer: str, *, completed: bool = False) -> SubtaskOutcome:
        """The outcome, with what the subtask has cost so far."""
        return SubtaskOutcome(
            name=self.name,
            answer=answer,
            completed=completed,
            attempts=self._attempts,
            rounds=self._rounds_before + sum(loop.asked for loop in self._loops),
        )

    @property
    def _end(self) -> Deadline:
        return self.run.deadline(SUBTASKS_SHARE)


def _gist(advice: str) -> str:
    """Two pieces of advice with the same gist are the same."""
    return " ".join(advice.casefold().split()).rstrip(".!。！")

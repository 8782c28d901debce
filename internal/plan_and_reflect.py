"""The third strategy: plan, subtasks side by side, reflection, one answer.

Built from the same rounds, loops and calls as the other strategies.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile
from typing import Annotated, Self

from pydantic_core import to_json

from internal.agent import Blueprint
from internal.calls.judging import RepeatGuard
from internal.calls.runner import Post, drain, run_side_by_side
from internal.clock import Deadline
from internal.end import Result, finish, kept_alive
from internal.errors import AgentError, ModelCallFailed, OurWords, StopReason, log_defect
from internal.events import AnswerBreak, AnswerText, Event, Noted, Remark, SpanFinished, SpanStarted, ThoughtText
from internal.host.failures import FailureKind
from internal.loop import MAX_CORRECTIONS, AgentLoop, CallAnswer, Ending, LoopPart, TextAnswer
from internal.memory.records import (
    MAX_SUBTASKS,
    AnswerRecord,
    EntryRecord,
    FindingRecord,
    PlanRecord,
    RoundRecord,
    SubtaskRecord,
    UserRecord,
    findings_block,
    quoted_result,
    unread_results,
)
from internal.model.turn import ModelCaller
from internal.node.params import Limits, StrategyParams
from internal.node.tools import Tool, Toolbox
from internal.node.virtual_tools import plan_tool, reflection_tool
from internal.policy import DEFAULT_POLICY
from internal.review import SecondLook, ask_for_call
from internal.run import Run
from internal.sentences import findings_shown, plan_shown
from internal.sources import escaped
from internal.text.texts import cut_evenly
from internal.transcript.transcript import Transcript, estimate_tokens, without_result
from prompt import template


class PlanAndReflectParams(StrategyParams):
    """The common parameters, and how far a plan may go."""

    maximum_subtasks: Annotated[int, Limits(1, MAX_SUBTASKS)] = 4
    """Subtasks of one plan."""
    maximum_attempts: Annotated[int, Limits(1, 5)] = 3
    """Attempts at one subtask, each with its own rounds."""


# How a subtask ended: what the answer, the variables and the log say of it.


@dataclass(frozen=True)
class SubtaskOutcome:
    """How one subtask ended."""

    name: str
    answer: str
    completed: bool = False
    attempts: int = 0
    rounds: int = 0
    limit: StopReason | None = None
    """What ended its work too early; None if nothing did."""
    waits: bool = False
    """Whether calls of it wait for the user."""
    unread: tuple[str, ...] = ()
    """Tool results that its model did not put into words before the run's budget was reached."""

    @property
    def finding(self) -> FindingRecord:
        """What the final answer and later runs have of it."""
        return FindingRecord(subtask=self.name, answer=self.answer, completed=self.completed)

    def with_unread(self) -> Self:
        """The outcome with the unread results in its answer, cut short: what the final answer is written from."""
        if not self.unread:
            return self
        return replace(self, answer=f"{self.answer}\n\n{unread_results(self.unread)}", unread=())


# The answer of a plan: one streamed model call over the findings of the subtasks.
#
# Findings that do not fit into the window together are cut evenly. If no answer comes in time, the findings
# themselves are the answer.

_KEPT_SHARES = (0.95, 0.5, 0.25)
"""Of the size that findings may have; the next share is tried when the provider says that the prompt is too long."""


def answer_from_findings(
    run: Run[PlanAndReflectParams], subtasks: Sequence[SubtaskOutcome], submit: Tool | None, second_look: SecondLook
) -> Generator[Event, None, Ending]:
    """Ask for the answer, offering no tools but the one that takes it, and have it judged.

    Raises:
        AgentError: the model call failed, and retries did not help; the log holds the findings.
    """
    started = run.clock.now()
    yield SpanStarted("answer", "ANSWER")
    try:
        ending = yield from _ask(run, subtasks, submit, second_look)
    except AgentError as failure:
        if not (isinstance(failure, ModelCallFailed) and failure.kind is FailureKind.TIMEOUT):
            found = {"findings": {subtask.name: subtask.answer for subtask in subtasks}}
            yield SpanFinished("answer", run.clock.now() - started, found, failure.detail)
            raise
        ending = Ending(StopReason.TIME_LIMIT, "", None)
    if ending.reason is StopReason.TIME_LIMIT and not ending.text:
        ending = replace(ending, text=_as_answer(subtasks))
        if submit is None:  # with an answer schema, the text is shown at the end of the run
            yield AnswerBreak()
            yield AnswerText(ending.text)
    yield SpanFinished("answer", run.clock.now() - started)
    return ending


def _ask(
    run: Run[PlanAndReflectParams], subtasks: Sequence[SubtaskOutcome], submit: Tool | None, second_look: SecondLook
) -> Generator[Event, None, Ending]:
    """Ask with as much of the findings as fits, and with less if the provider says that it is too much."""
    toolbox = Toolbox().with_tool(submit) if submit else Toolbox()
    models = run.models(toolbox)
    subtasks = [subtask.with_unread() for subtask in subtasks]
    asked = 0
    for share in _KEPT_SHARES:
        kept = _fitted(run, models, subtasks, share)
        if any(len(short.answer) < len(subtask.answer) for short, subtask in zip(kept, subtasks, strict=True)):
            yield Noted(OurWords("the findings were too long for one prompt and were cut evenly"), "answer")
        loop = run.loop(
            models,
            run.transcript(_request(run, kept)),
            CallAnswer() if submit else TextAnswer(),
            LoopPart(
                tool_share=1,
                maximum_iterations=MAX_CORRECTIONS + 1 if submit else 1,
                parent="answer",
                asked=asked,
            ),
        )
        try:
            return (yield from second_look.answer(loop, [subtask.answer for subtask in kept]))
        except ModelCallFailed as failure:
            asked = loop.asked
            if failure.kind is not FailureKind.CONTEXT_LENGTH or share == _KEPT_SHARES[-1]:
                raise
    raise AssertionError  # the last share either brings an ending or raises


def _request(run: Run[PlanAndReflectParams], subtasks: Sequence[SubtaskOutcome]) -> str:
    findings = findings_block(subtask.finding for subtask in subtasks)
    return template.ANSWER_REQUEST.format(task=escaped(run.dialogue.task), findings=findings)


def _fitted(
    run: Run[PlanAndReflectParams], models: ModelCaller, subtasks: Sequence[SubtaskOutcome], share: float
) -> list[SubtaskOutcome]:
    """The outcomes, with answers cut so that they fit beside the rest of the prompt."""
    window = models.window
    rest = window.weigh(run.transcript(_request(run, [replace(subtask, answer="") for subtask in subtasks])))
    answers = cut_evenly([subtask.answer for subtask in subtasks], share * (window.longest_request - rest.size), _bytes)
    if window.prompt_tokens is not None:
        answers = cut_evenly(answers, share * (window.prompt_tokens - rest.tokens), estimate_tokens)
    elif share != _KEPT_SHARES[0]:
        answers = cut_evenly(answers, share * sum(map(estimate_tokens, answers)), estimate_tokens)
    return [replace(subtask, answer=answer) for subtask, answer in zip(subtasks, answers, strict=True)]


def _bytes(text: str) -> int:
    return len(to_json(text))


def _as_answer(subtasks: Sequence[SubtaskOutcome]) -> str:
    """The findings, each under the name of its subtask."""
    return "\n\n".join(f"**{subtask.name}**\n\n{subtask.answer}" for subtask in subtasks)


# One subtask of a plan: attempts, each its own loop, until a judgement says that it is completed.
#
# All attempts share a transcript and its guard. Before the next attempt, the tool results of the last one become one-
# line notes.

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


# Plan, subtasks side by side, reflection, one answer: built from the same rounds as the other strategies.
#
# A subtask that fails does not affect the others. Without a plan the question itself is the only subtask. The log is
# PLAN, SUBTASK i (ATTEMPT j → rounds → REFLECTION), ANSWER.

PLAN_SHARE = 0.4
"""Of the run's time; without a plan by then, the run goes on without one."""


_LIMITS = (StopReason.TOKEN_LIMIT, StopReason.CALL_LIMIT, StopReason.TIME_LIMIT)
"""What may end subtasks too early; the first of them is the run's stop reason."""


def plan_and_reflect(run: Run[PlanAndReflectParams], submit: Tool | None) -> Generator[Event, None, None]:
    """Run the strategy; a plan in which calls waited goes on where it was."""
    yield from run.begin()
    begun = run.dialogue.waiting_plan
    plan = [subtask.name for subtask in begun.subtasks] if begun else (yield from _plan(run))
    workers = [
        SubtaskWorker(run, plan, number, begun.subtasks[number - 1] if begun else None)
        for number in range(1, len(plan) + 1)
    ]
    subtasks = yield from _work_side_by_side(run, workers)
    limits = [reason for reason in _LIMITS if any(subtask.limit is reason for subtask in subtasks)]
    second_look = SecondLook(run, is_due=not limits)
    unfinished = None
    if any(subtask.waits for subtask in subtasks):
        ending = Ending(StopReason.APPROVAL_REQUIRED, "", None)
        unfinished = PlanRecord(subtasks=tuple(map(SubtaskWorker.record, workers, subtasks)))
    else:
        ending = yield from kept_alive(run, answer_from_findings(run, subtasks, submit, second_look))
    whole = replace(
        ending,
        reason=limits[0] if limits and ending.reason is StopReason.ANSWERED else ending.reason,
    )
    result = Result(
        whole,
        _record(run, subtasks),
        rounds_before=sum(subtask.rounds for subtask in begun.subtasks) if begun else 0,
        plan=unfinished,
        variables={**_variables(plan, subtasks), **second_look.variables},
        decisions=_decisions(subtasks),
    )
    yield from finish(run, result, submit)


PLAN_AND_REFLECT = Blueprint(
    "gpt5_plan_and_reflect", DEFAULT_POLICY, PlanAndReflectParams, plan_and_reflect, needs_tool_calls=True
)


def _plan(run: Run[PlanAndReflectParams]) -> Generator[Event, None, list[str]]:
    """Have the model split the question; without a plan the question is the only subtask."""
    started = run.clock.now()
    yield SpanStarted("plan", "PLAN")
    tool = plan_tool(run.params.maximum_subtasks)
    request = template.PLAN_REQUEST.format(task=escaped(run.dialogue.task), most=run.params.maximum_subtasks)
    models = run.models(Toolbox({tool.name: tool}))
    reply = yield from ask_for_call(models, run.transcript(request), tool, "plan", run.deadline(PLAN_SHARE))
    named = (reply or {}).get("subtasks", [])
    plan = list(dict.fromkeys(" ".join(name.split()) for name in named if name.strip()))
    if not plan:
        yield Noted(OurWords("no plan came; the question is worked on as one subtask"), "plan")
        plan = [run.dialogue.task]
    if run.params.emit_intermediate_thoughts and len(plan) > 1:
        yield ThoughtText(plan_shown(plan, run.dialogue.words))
    yield SpanFinished("plan", run.clock.now() - started, {"subtasks": plan})
    return plan


def _work_side_by_side(
    run: Run[PlanAndReflectParams], workers: Sequence[SubtaskWorker]
) -> Generator[Event, None, list[SubtaskOutcome]]:
    """Work on all subtasks at once; one that does not end in time has an outcome that says so."""
    started = run.clock.now()
    for worker in workers:
        yield SpanStarted(worker.key, f"SUBTASK {worker.number}", about=worker.name, number=worker.number)
    deadline = run.deadline(SUBTASKS_SHARE)
    outcomes = yield from run_side_by_side([partial(_work, worker) for worker in workers], deadline)
    for position, worker in enumerate(workers):
        if position not in outcomes:
            outcomes[position] = worker.broken_off(template.SUBTASK_OUT_OF_TIME, StopReason.TIME_LIMIT)
            yield from _finished(worker, outcomes[position], started, "not done before the deadline")
    found = [outcomes[position] for position in range(len(workers))]
    if run.params.emit_intermediate_thoughts:
        yield Remark(findings_shown(((outcome.name, outcome.answer) for outcome in found), run.dialogue.words))
    return found


def _work(worker: SubtaskWorker, post: Post) -> SubtaskOutcome:
    """One subtask in its own greenlet; a failure ends only this subtask."""
    started, error = worker.run.clock.now(), None
    try:
        outcome = drain(worker.work(), post)
    except AgentError as failure:
        outcome, error = worker.broken_off(template.SUBTASK_FAILED), failure.detail
    except Exception as defect:  # noqa: BLE001 - a defect of ours costs this subtask, not the others
        log_defect(defect)
        outcome, error = worker.broken_off(template.SUBTASK_FAILED), OurWords(f"a defect: {type(defect).__name__}")
    for event in _finished(worker, outcome, started, error):
        post(event)
    return outcome


def _finished(worker: SubtaskWorker, outcome: SubtaskOutcome, started: float, error: str | None) -> Iterator[Event]:
    """Show a subtask's outcome in the log."""
    data = {"answer": outcome.answer, "completed": outcome.completed, "attempts": outcome.attempts}
    yield SpanFinished(worker.key, worker.run.clock.now() - started, data, error)


def _record(run: Run[PlanAndReflectParams], subtasks: Sequence[SubtaskOutcome]) -> list[EntryRecord]:
    """The conversation with the question and, once no subtask waits, with what was found."""
    question = run.task_record
    if not any(subtask.waits for subtask in subtasks):
        found = tuple(subtask.with_unread().finding for subtask in subtasks)
        question = question.model_copy(update={"findings": found})
    return [*run.dialogue.earlier, question]


def _variables(plan: Sequence[str], subtasks: Sequence[SubtaskOutcome]) -> dict[str, object]:
    return {
        "plan": list(plan),
        "subtasks": [
            {
                "name": subtask.name,
                "answer": subtask.answer,
                "completed": subtask.completed,
                "attempts": subtask.attempts,
            }
            for subtask in subtasks
        ],
    }


def _decisions(subtasks: Sequence[SubtaskOutcome]) -> dict[str, object]:
    return {
        "subtasks": len(subtasks),
        "subtasks_completed": sum(subtask.completed for subtask in subtasks),
        "attempts": sum(subtask.attempts for subtask in subtasks),
    }

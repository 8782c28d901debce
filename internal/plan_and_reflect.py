"""The strategy with a plan: parallel subtasks, a judgement on each of them, and one answer from their findings.

examples/helpdesk/how-the-agent-works.md shows the strategy as a picture and runs each step on its own.
"""

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import Annotated

from internal.agent import Blueprint
from internal.calls.judging import RepeatGuard
from internal.calls.runner import Post, drain, run_side_by_side
from internal.end import Result, kept_alive
from internal.errors import AgentError, ModelCallFailed, OurWords, StopReason, log_defect
from internal.events import (
    AgentThought,
    AnswerBreak,
    AnswerText,
    Event,
    LogNote,
    SpanFinished,
    SpanStarted,
    ThoughtText,
    in_row,
)
from internal.host.failures import FailureKind
from internal.loop import MAX_CORRECTIONS, AgentLoop, Finish, LoopPart
from internal.memory.records import (
    MAX_SUBTASKS,
    AnswerRecord,
    EntryRecord,
    FindingRecord,
    PlanRecord,
    RoundRecord,
    SubtaskRecord,
    findings_block,
    quoted_result,
    unread_results,
)
from internal.node.params import ExtraOutput, Limits, StrategyParams
from internal.node.tools import Toolbox
from internal.node.virtual_tools import plan_tool, reflection_tool
from internal.policy import PolicyTexts
from internal.review import AnswerReview, Reply, ask_for_call, ask_judge
from internal.run import Run
from internal.sources import escaped
from internal.text.language import language_of
from internal.text.texts import cut_evenly
from internal.transcript.steps import Advice, UserInput, records_of
from internal.transcript.transcript import Transcript, estimate_tokens, without_finding, without_first_picture
from prompt import template, user_texts

PLAN_SHARE = 0.4
"""Share of the run's time for the plan. If there is no plan by then, the question is the only subtask."""
TOOLS_SHARE = 0.7
"""Share of the run's time after which subtasks may no longer call tools."""
SUBTASKS_SHARE = 0.85
"""Share of the run's time after which subtasks must have an answer. The rest is for the final answer."""
_KEPT_SHARES = (0.95, 0.5, 0.25)
"""Shares of the maximum size of the findings. The next share is tried if the provider reports that the prompt is too
long."""
_LIMITS = (
    StopReason.UNPARSED_CALL,
    StopReason.TOKEN_LIMIT,
    StopReason.CALL_LIMIT,
    StopReason.SIZE_LIMIT,
    StopReason.TIME_LIMIT,
)
"""Reasons that may end subtasks too early. The first of them that occurred is the run's stop reason."""


class PlanAndReflectParams(StrategyParams):
    """The common parameters, and the limits of a plan."""

    maximum_subtasks: Annotated[int, Limits(1, MAX_SUBTASKS)] = 4
    maximum_attempts: Annotated[int, Limits(1, 5)] = 3


type PlanRun = Run[PlanAndReflectParams]


def plan_and_reflect(run: PlanRun) -> Generator[Event, None, Result]:
    """Run the strategy. A plan whose calls waited for approval is resumed."""
    if run.dialogue.open and run.dialogue.open.plan:
        subtasks: Sequence[SubtaskRecord] = run.dialogue.open.plan.subtasks
    else:
        row = SpanStarted("plan", "PLAN")
        subtasks = yield from in_row(
            row, make_plan(run), run.clock, lambda plan: {"subtasks": [subtask.name for subtask in plan]}
        )
    workers = [SubtaskWorker(run, subtasks, number) for number in range(1, len(subtasks) + 1)]
    outcomes = yield from _work_side_by_side(run, workers)
    records = [outcome.record for outcome in outcomes]
    limits = [reason for reason in _LIMITS if any(outcome.limit is reason for outcome in outcomes)]
    answer_review = AnswerReview(run, is_due=not limits)
    question = run.task
    plan = None
    if any(record.entries for record in records):  # calls wait
        ending = Finish(StopReason.APPROVAL_REQUIRED)
        plan = PlanRecord(subtasks=tuple(records))
    else:
        question = question.model_copy(update={"findings": tuple(outcome.finding for outcome in outcomes)})
        answer = in_row(SpanStarted("answer", "ANSWER"), answer_from_findings(run, outcomes, answer_review), run.clock)
        ending = yield from kept_alive(run, answer)
    if limits and ending.reason is StopReason.ANSWERED:
        ending = replace(ending, reason=limits[0])
    shown = [
        {"name": outcome.record.name, **outcome.shown, **worker.details}
        for worker, outcome in zip(workers, outcomes, strict=True)
    ]
    return Result(
        ending,
        [*run.dialogue.earlier, UserInput(question)],
        rounds_before=sum(subtask.rounds for subtask in subtasks),
        plan=plan,
        variables={"plan": [record.name for record in records], "subtasks": shown, **answer_review.variables},
        decisions={
            "subtasks": len(records),
            "subtasks_completed": sum(record.completed for record in records),
            "attempts": sum(record.attempts for record in records),
        },
    )


PLAN_POLICY = PolicyTexts(
    plan_policy=template.PLAN_POLICY,
    subtask_policy=template.SUBTASK_POLICY,
    reflection_policy=template.REFLECTION_POLICY,
    retry_policy=template.RETRY_POLICY,
    answer_policy=template.ANSWER_POLICY,
)
PLAN_AND_REFLECT = Blueprint(
    "gpt5_plan_and_reflect", PLAN_POLICY, PlanAndReflectParams, plan_and_reflect, needs_tool_calls=True
)


def make_plan(run: PlanRun) -> Generator[Event, None, list[SubtaskRecord]]:
    """Have the model split the question into subtasks. Without a plan the question is the only subtask."""
    most = run.params.maximum_subtasks
    task = run.task.text
    policy = run.policy.plan_policy.replace("{most}", str(most))
    request = run.transcript(template.PLAN_REQUEST.format(task=escaped(task), policy=policy))
    models = run.models.offering(Toolbox().with_tool(plan_tool(most)))
    reply = yield from ask_for_call(models, request, "plan", run.deadline(PLAN_SHARE))
    named = (reply or {}).get("subtasks", [])
    names = list(dict.fromkeys(" ".join(name.split()) for name in named if name.strip()))
    if not names:
        yield LogNote(OurWords("the model gave no plan; the question is worked on as one subtask"), "plan")
        names = [task]
    if run.params.emit_intermediate_thoughts and len(names) > 1:
        numbered = (f"{number}. {name}" for number, name in enumerate(names, start=1))
        # Dify's page renders Markdown in a thought only after the first blank line.
        yield ThoughtText("\n".join([user_texts.PLAN_HEADING[language_of(run.dialogue.words)], "", *numbered]))
    return [SubtaskRecord(name=name) for name in names]


# The subtasks.


@dataclass(frozen=True)
class SubtaskOutcome:
    """How one subtask ended."""

    record: SubtaskRecord
    """The record for a later run, which continues the subtask if calls wait."""
    limit: StopReason | None = None
    """The limit that ended the subtask too early; None if it ended normally."""
    unread: tuple[str, ...] = ()
    """Tool results that the model did not use in an answer before it had to stop."""

    @property
    def shown(self) -> dict[str, object]:
        """The fields of the outcome that the log and the variables show."""
        answer = self.record.answer
        if self.record.entries:
            answer = template.WAITS_FOR_APPROVAL
        return {"answer": answer, "completed": self.record.completed, "attempts": self.record.attempts}

    @property
    def finding(self) -> FindingRecord:
        """The finding for the final answer and for later runs, with unread results in shortened form."""
        unread = ""
        if self.unread:
            unread = f"\n\n{unread_results(self.unread)}"
        answer = f"{self.record.answer}{unread}"
        return FindingRecord(subtask=self.record.name, answer=answer, completed=self.record.completed)


def _work_side_by_side(
    run: PlanRun, workers: Sequence["SubtaskWorker"]
) -> Generator[Event, None, list[SubtaskOutcome]]:
    """Work on all subtasks in parallel. The outcome of a subtask that does not end in time says so."""
    started = run.clock.now()
    for worker in workers:
        yield SpanStarted(worker.key, f"SUBTASK {worker.number}", about=worker.name, number=worker.number)
    jobs = [partial(_work, worker) for worker in workers]
    outcomes = yield from run_side_by_side(jobs, run.deadline(SUBTASKS_SHARE))
    for position, worker in enumerate(workers):
        if position not in outcomes:
            late = outcomes[position] = worker.broken_off(template.SUBTASK_OUT_OF_TIME, StopReason.TIME_LIMIT)
            yield SpanFinished(worker.key, run.clock.now() - started, late.shown, "not done before the deadline")
    found = [outcomes[position] for position in range(len(workers))]
    if run.params.emit_intermediate_thoughts:
        answers = (
            f"**{number}. {outcome.record.name}**\n\n{outcome.shown['answer']}"
            for number, outcome in enumerate(found, start=1)
        )
        yield AgentThought("\n\n".join([user_texts.FINDINGS_HEADING[language_of(run.dialogue.words)], *answers]))
    return found


def _work(worker: "SubtaskWorker", post: Post) -> SubtaskOutcome:
    """Work on one subtask in its own greenlet. A failure ends only this subtask."""
    clock = worker.run.clock
    error = None
    started = clock.now()
    try:
        outcome = drain(worker.work(), post)
    except AgentError as failure:
        outcome = worker.broken_off(template.SUBTASK_FAILED)
        error = failure.detail
    except Exception as defect:  # noqa: BLE001 - a defect of the agent ends only this subtask
        log_defect(defect)
        outcome = worker.broken_off(template.SUBTASK_FAILED)
        error = OurWords(f"a defect: {type(defect).__name__}")
    post(SpanFinished(worker.key, clock.now() - started, outcome.shown, error))
    return outcome


class SubtaskWorker:
    """Attempts one subtask until a judgement says that it is completed. Each attempt has its own loop.

    All attempts share a transcript and its repeat guard. Before each new attempt, the tool results of the last attempt
    become one-line notes.
    """

    def __init__(self, run: PlanRun, plan: Sequence[SubtaskRecord], number: int) -> None:
        """Open the subtask's conversation, or resume it. ``number`` is its position in the plan, from 1."""
        self.run = run
        self.plan = plan
        self.number = number
        begun = self._begun = plan[number - 1]
        self.name = begun.name
        self.key = f"subtask{number}"
        self._attempts = begun.attempts
        self._advised = begun.advised
        self._nearest = begun.nearest
        self._guard = RepeatGuard()
        self._loops = list[AgentLoop]()
        self._reflections = list[Mapping[str, object]]()
        self.waiting: RoundRecord | None = None
        """The round whose calls an earlier run left waiting."""
        done = begun.entries
        last = next(reversed(done), None)
        if isinstance(last, RoundRecord) and last.waiting:
            self.waiting = last
            done = done[:-1]
        if begun.entries:
            self._transcript = run.resumed(done)
        else:
            task = escaped(run.task.text)
            name = escaped(self.name)
            policy = run.policy.subtask_policy
            request = template.SUBTASK_REQUEST.format(task=task, plan=self._numbered_plan, subtask=name, policy=policy)
            self._transcript = run.transcript(request.rstrip())
        of_attempt = takewhile(lambda entry: not isinstance(entry, AnswerRecord), reversed(done))
        left_open = sum(1 + len(entry.calls) if isinstance(entry, RoundRecord) else 1 for entry in of_attempt)
        self._opened = self._transcript.length - left_open
        """Number of messages before the first attempt in this run. An earlier run may have left some messages of that
        attempt."""

    @property
    def details(self) -> Mapping[str, object]:
        """The judgements of the attempts, if the node outputs thoughts."""
        if ExtraOutput.THOUGHTS in self.run.params.extra_outputs:
            return {"reflections": self._reflections}
        return {}

    @property
    def _rounds(self) -> int:
        """Number of rounds that began in this run."""
        return max((loop.rounds_begun for loop in self._loops), default=0)

    @property
    def _numbered_plan(self) -> str:
        return "\n".join(f"{number}. {escaped(each.name)}" for number, each in enumerate(self.plan, start=1))

    def work(self) -> Generator[Event, None, SubtaskOutcome]:
        """Repeat attempts until one is accepted, a call waits, or attempts, time, budget or new advice run out."""
        if self._begun.answer and not self._begun.entries:
            return SubtaskOutcome(self._begun)
        outcome: SubtaskOutcome | None = None
        waiting = self.waiting
        while outcome is None:
            since = self._transcript.length
            if waiting:
                since = self._opened
            if reached := self.run.budget.reached():
                results = self._transcript.results_since(since)
                return self._incomplete(template.SUBTASK_STOPPED, reached, results)
            self._attempts += waiting is None
            row = SpanStarted(f"{self.key}.attempt{self._attempts}", f"ATTEMPT {self._attempts}")
            outcome = yield from in_row(row, self._attempt(row.key, since, waiting), self.run.clock)
            waiting = None
        return outcome

    def _attempt(
        self, key: str, since: int, waiting: RoundRecord | None
    ) -> Generator[Event, None, SubtaskOutcome | None]:
        """Run one loop that the user does not see, and judge its answer; None if another attempt should follow."""
        ending = yield from self.loop(key, waiting).run()
        if ending.reason is StopReason.APPROVAL_REQUIRED:
            return SubtaskOutcome(self.left_open())
        if ending.tool_answers:  # the result of an answer tool needs no judgement
            return SubtaskOutcome(self._record(ending.text, completed=True))
        results = self._transcript.results_since(since)
        if reached := self.run.budget.reached():
            self._keep(ending)
            return self._incomplete(template.SUBTASK_STOPPED, reached, () if ending.text else results)
        judgement: Reply = None
        if ending.reason is not StopReason.UNPARSED_CALL:
            judgement = yield from self.judge_answer(ending.text, results, f"{key}.reflection")
        if judgement:
            self._reflections.append({"is_completed": judgement["is_completed"], "advice": judgement["advice"]})
        if judgement and judgement["is_completed"] and ending.text:
            return SubtaskOutcome(self._record(ending.text, completed=True))
        self._keep(ending)
        if judgement is None and self.run.models.models.writes_calls:
            return self.broken_off(template.SUBTASK_FAILED, StopReason.UNPARSED_CALL)
        advice = (str(judgement["advice"]).strip() if judgement else "") or template.DEFAULT_ADVICE
        is_late = self.run.deadline(TOOLS_SHARE).has_passed()
        is_repeated = judgement is not None and _gist(advice) in map(_gist, self._advised)
        if self._attempts >= self.run.params.maximum_attempts or is_repeated or is_late:
            is_late = is_late or ending.reason is StopReason.TIME_LIMIT
            return self._incomplete(template.SUBTASK_NOT_FOUND, StopReason.TIME_LIMIT if is_late else None)
        self.advise(ending.text, advice)
        return None

    def loop(self, key: str, waiting: RoundRecord | None = None, maximum_iterations: int | None = None) -> AgentLoop:
        """Return the next loop over the conversation of the subtask, below this row of the log."""
        part = LoopPart(
            TOOLS_SHARE,
            SUBTASKS_SHARE,
            maximum_iterations,
            is_seen=False,
            subtask=self.name,
            parent=key,
            rounds_before=self._rounds,
        )
        loop = self.run.loop(self._transcript, self.run.toolbox, part, self._guard, waiting)
        self._loops.append(loop)
        return loop

    def left_open(self) -> SubtaskRecord:
        """Return the subtask as it is now, with its conversation, for a later run."""
        return self._record("", entries=records_of(self._transcript.own_steps))

    def advise(self, answer: str, advice: str) -> None:
        """Prepare another attempt: turn earlier results into notes, and give the model the advice."""
        self._advised = (*self._advised, advice)
        self._transcript.shorten(without_first_picture)
        self._transcript.shorten(without_finding)
        policy = self.run.policy.retry_policy or template.ADVICE_BEHIND
        self._transcript.append(Advice(answer, policy.replace("{advice}", escaped(advice)).strip()))

    def results(self) -> list[str]:
        """Return the tool results since the beginning of the first attempt."""
        return self._transcript.results_since(self._opened)

    def judge_answer(self, answer: str, results: Sequence[str], key: str) -> Generator[Event, None, Reply]:
        """Have the model judge the answer by the tool results. Without a judgement the subtask is not completed."""
        request = template.REFLECTION_REQUEST.format(
            plan=self._numbered_plan,
            results="\n\n".join(escaped(quoted_result(result)) for result in results) or template.NO_RESULTS,
            answer=escaped(answer),
            subtask=escaped(self.name),
            policy=self.run.policy.reflection_policy,
            earlier="".join(template.EARLIER_ADVICE.format(advice=escaped(advice)) for advice in self._advised),
        )
        models = self.run.models.offering(Toolbox().with_tool(reflection_tool()))
        asking = ask_for_call(models, self.run.transcript(request), key, self.run.deadline(SUBTASKS_SHARE))
        otherwise = OurWords("there was no judgement; the subtask counts as not completed")
        row = SpanStarted(key, "REFLECTION")
        shown = {"is_completed": False, "advice": ""}
        return (yield from ask_judge(asking, row, self.run.clock, otherwise, shown))

    def _keep(self, ending: Finish) -> None:
        """Store the answer instead of the previous one, or append an answer that a limit cut short."""
        before = ""
        if self._nearest and ending.reason in _LIMITS:
            before = f"{self._nearest}\n\n"
        if ending.text:
            self._nearest = f"{before}{ending.text}"

    def broken_off(self, sentence: str, limit: StopReason | None = None) -> SubtaskOutcome:
        """Return the outcome after the model failed or time ran out, with the tool results."""
        return self._incomplete(sentence, limit, self.results())

    def _incomplete(self, sentence: str, limit: StopReason | None, results: Sequence[str] = ()) -> SubtaskOutcome:
        """Return the outcome if no answer was accepted, with the best attempt. Refusals are not results."""
        nearest = ""
        if self._nearest:
            nearest = template.NEAREST.format(answer=self._nearest)
        left_out = {template.ELIDED_TOOL_RESULT, *self.run.budget.refusals.values()}
        unread = tuple(result for result in results if result not in left_out)
        return SubtaskOutcome(self._record(f"{sentence}{nearest}"), limit, unread)

    def _record(self, answer: str, *, completed: bool = False, entries: Sequence[EntryRecord] = ()) -> SubtaskRecord:
        done = {"attempts": self._attempts, "rounds": self._begun.rounds + self._rounds}
        kept = {"advised": self._advised, "nearest": self._nearest, "entries": tuple(entries)}
        return self._begun.model_copy(update={"answer": answer, "completed": completed, **done, **kept})


def _gist(advice: str) -> str:
    """Return the advice in a form that is equal for two equivalent pieces of advice."""
    return " ".join(advice.casefold().split()).rstrip(".!。！")


def answer_from_findings(
    run: PlanRun, outcomes: Sequence[SubtaskOutcome], answer_review: AnswerReview
) -> Generator[Event, None, Finish]:
    """Ask for the answer with as many of the findings as fit, and with fewer if the provider refuses the prompt.

    If no answer arrives in time, the findings themselves are the answer. Raises ``AgentError`` if the model call fails.
    """
    findings = [outcome.finding for outcome in outcomes]
    answers = [finding.answer for finding in findings]
    toolbox = run.answering(Toolbox())
    rounds_before = 0
    ending = Finish(StopReason.TIME_LIMIT)
    room = run.models.offering(toolbox).window.room(_request(run, findings, [""] * len(answers)))
    for share in _KEPT_SHARES:
        if math.isinf(room) and share != _KEPT_SHARES[0]:
            room = sum(map(estimate_tokens, answers))
        kept = cut_evenly(answers, share * room, estimate_tokens)
        if kept != answers:
            yield LogNote(OurWords("the findings were too long for one prompt and were cut evenly"), "answer")
        rounds = 1
        if run.submit:
            rounds = MAX_CORRECTIONS + 1
        part = LoopPart(tool_share=1, maximum_iterations=rounds, parent="answer", rounds_before=rounds_before)
        loop = run.loop(_request(run, findings, kept), toolbox, part)
        try:
            ending = yield from answer_review.answer(loop, kept)
        except ModelCallFailed as failure:
            rounds_before = loop.rounds_begun
            if failure.kind is FailureKind.CONTEXT_LENGTH and share != _KEPT_SHARES[-1]:
                continue
            if failure.kind is not FailureKind.TIMEOUT:
                raise
        break
    if ending.reason is StopReason.TIME_LIMIT and not ending.text:
        ending = replace(
            ending, text="\n\n".join(f"**{each.record.name}**\n\n{each.record.answer}" for each in outcomes)
        )
        if run.submit is None:  # with an answer schema, the text is shown at the end of the run
            yield AnswerBreak()
            yield AnswerText(ending.text)
    return ending


def _request(run: PlanRun, findings: Sequence[FindingRecord], answers: Sequence[str]) -> Transcript:
    """Return the request for the final answer, with these texts as the answers of the findings."""
    shown = [finding.model_copy(update={"answer": text}) for finding, text in zip(findings, answers, strict=True)]
    task = escaped(run.task.text)
    policy = run.policy.answer_policy
    return run.transcript(template.ANSWER_REQUEST.format(task=task, findings=findings_block(shown), policy=policy))

"""Plan, subtasks side by side, reflection, one answer: built from the same rounds as the other strategies.

In: a run. Out: its events. A subtask that fails does not affect the others. Without a plan the question itself is the
only subtask. The log is PLAN, SUBTASK i (ATTEMPT j → rounds → REFLECTION), ANSWER.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial

from internal.agent import Blueprint
from internal.asking import ask_for_call
from internal.calls.side_by_side import Post, drain, run_side_by_side
from internal.errors import AgentError, log_defect
from internal.finish import Result, finish, kept_alive
from internal.plan_and_reflect.answer import answer_from_findings
from internal.plan_and_reflect.outcome import SubtaskOutcome
from internal.plan_and_reflect.params import PlanAndReflectParams
from internal.plan_and_reflect.subtask import SUBTASKS_SHARE, SubtaskWorker
from internal.policy import DEFAULT_POLICY
from internal.report.events import Event, Noted, Remark, SpanFinished, SpanStarted, StopReason, ThoughtText
from internal.report.sentences import findings_shown, plan_shown
from internal.report.sources import escaped
from internal.review.second_look import SecondLook
from internal.run import Run
from internal.state.records import EntryRecord, PlanRecord
from internal.steps import Ending
from internal.text.notes import OurWords
from internal.tools.toolbox import Tool, Toolbox
from internal.tools.virtual_tools import plan_tool
from prompt import template

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

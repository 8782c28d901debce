"""The strategy `helpdesk_step`: one step of `gpt5_plan_and_reflect`, by that strategy's own code.

`plugin.py` puts it into a copy of the plugin. In and out: JSON objects, of which README says what each holds.
"""

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import strategies.gpt5_function_calling as base
from internal.agent import Blueprint
from internal.call import JudgedCall, ValidCall
from internal.calls.judging import Approvals, Resumption
from internal.end import Result
from internal.errors import InvalidParameters, StopReason
from internal.events import Event, SpanStarted, in_row
from internal.loop import Finish
from internal.memory.approval import Decision, Verdict
from internal.memory.records import RoundRecord, SubtaskRecord
from internal.node.params import Text
from internal.node.tools import Toolbox
from internal.plan_and_reflect import (
    PLAN_POLICY,
    PlanAndReflectParams,
    PlanRun,
    SubtaskOutcome,
    SubtaskWorker,
    answer_from_findings,
    make_plan,
)
from internal.review import AnswerReview
from internal.run import Run
from internal.transcript.steps import UserInput
from prompt import template

type Json = dict[str, Any]
type Step = Generator[Event, None, Json]


class StepParams(PlanAndReflectParams):
    step: Text = ""
    given: Text = ""
    """JSON: what the steps before have put out."""


def plan(run: PlanRun, _given: Json) -> Step:
    subtasks = yield from make_plan(run)
    return {"plan": [subtask.name for subtask in subtasks]}


def select(run: PlanRun, given: Json) -> Step:
    """The model chooses tools; nothing runs. It may answer at once instead."""
    worker = _worker(replace(run, approvals=_HoldsAll(run.approvals.secrets)), given)
    ending = yield from worker.loop("select").run()
    record = worker.left_open()
    if ending.reason is not StopReason.APPROVAL_REQUIRED:
        return {"calls": [], "answer": ending.text, "results": worker.results(), "subtask": _json(record)}
    last = [entry for entry in record.entries[-1:] if isinstance(entry, RoundRecord)]
    waiting = [call for entry in last for call in entry.waiting]
    calls = [{"tool": call.tool, "arguments": json.loads(call.arguments)} for call in waiting]
    return {"calls": calls, "subtask": _json(record)}


def execute(run: PlanRun, given: Json) -> Step:
    """Run the calls that the model chose."""
    agreed = Resumption(Decision(Verdict(approved=True)), has_question=False, _query="")
    worker = _worker(replace(run, dialogue=replace(run.dialogue, resumption=agreed)), given)
    loop = worker.loop("execute", worker.waiting)
    if loop.before is None:
        raise InvalidParameters("step execute: no calls wait; run the step select first")
    yield from loop.before
    return {"results": worker.results(), "subtask": _json(worker.left_open())}


def write(run: PlanRun, given: Json) -> Step:
    """The model answers the subtask from the results, and no more tools run. The results may have been changed."""
    worker = _worker(run, {**given, "subtask": _with_results(given)})
    ending = yield from worker.loop("write", maximum_iterations=0).run()
    return {"answer": ending.text}


def reflect(run: PlanRun, given: Json) -> Step:
    """The judgement; with advice, the subtask is ready for the next `select`."""
    worker = _worker(run, given)
    answer = _text(given, "answer")
    judgement = (yield from worker.judge_answer(answer, given.get("results", ()), "reflect.reflection")) or {}
    is_completed = bool(judgement.get("is_completed"))
    advice = str(judgement.get("advice", "")).strip()
    found = {"subtask": worker.name, "answer": answer, "completed": is_completed}
    others = [each for each in given.get("findings", ()) if each["subtask"] != worker.name]
    if not is_completed:
        advice = advice or template.DEFAULT_ADVICE
        worker.advise(answer, advice)
    done = {"is_completed": is_completed, "advice": advice, "findings": [*others, found]}
    return {**done, "subtask": _json(worker.left_open())}


def answer(run: PlanRun, given: Json) -> Step:
    """The final answer, from all findings."""
    findings = given.get("findings") or []
    if not findings:
        raise InvalidParameters("step answer: needs 'findings', which the step reflect puts out")
    outcomes = [
        SubtaskOutcome(SubtaskRecord(name=each["subtask"], answer=each["answer"], completed=each["completed"]))
        for each in findings
    ]
    ending = yield from answer_from_findings(run, outcomes, AnswerReview(run))
    return {"final_answer": ending.text}


STEPS: Mapping[str, Callable[[PlanRun, Json], Step]] = {
    step.__name__: step for step in (plan, select, execute, write, reflect, answer)
}


class _HoldsAll(Approvals):
    """Puts every valid call on hold, so that the step select runs none."""

    def hold(self, judged: Sequence[JudgedCall], toolbox: Toolbox, subtask: str | None = None) -> list[JudgedCall]:
        return [self._waiting(call, toolbox, subtask) if isinstance(call, ValidCall) else call for call in judged]


def take_step(run: Run[StepParams]) -> Generator[Event, None, Result]:
    name = run.params.step
    given = json.loads(run.params.given)
    run.numbered_sources.last = given.get("last_source", 0)
    done = yield from in_row(SpanStarted(name, name.upper()), STEPS[name](run, given), run.clock)
    done["last_source"] = run.numbered_sources.last
    ending = Finish(StopReason.ANSWERED, name)
    return Result(ending, [*run.dialogue.earlier, UserInput(run.task)], variables={"step": done})


def _worker(run: PlanRun, given: Json) -> SubtaskWorker:
    """The subtask as the steps before have left it; `number` counts from 1."""
    records = [SubtaskRecord(name=name) for name in given.get("plan") or ()]
    number = given.get("number", 1)
    if not 1 <= number <= len(records):
        raise InvalidParameters("needs 'plan', which the step plan puts out, and 'number' of a subtask in it, from 1")
    begun = given.get("subtask")
    if begun and begun["name"] == records[number - 1].name:
        records[number - 1] = SubtaskRecord.model_validate_json(json.dumps(begun))
    return SubtaskWorker(run, records, number)


def _with_results(given: Json) -> Json | None:
    """The subtask, in whose last round these results stand."""
    begun: Json | None = given.get("subtask")
    if not begun or not begun["entries"]:
        return begun
    last = begun["entries"][-1]
    results = given.get("results", ())
    if last["kind"] != "round" or len(last["calls"]) != len(results):
        return begun
    calls = [{**call, "result": result} for call, result in zip(last["calls"], results, strict=True)]
    return {**begun, "entries": [*begun["entries"][:-1], {**last, "calls": calls}]}


def _text(given: Json, name: str) -> str:
    if not isinstance(given.get(name), str):
        raise InvalidParameters(f"needs {name!r}, a text, which the step before puts out")
    return str(given[name])


def _json(record: SubtaskRecord) -> Json:
    return record.model_dump(mode="json")


class HelpdeskStepStrategy(base.GPT5FunctionCallingStrategy):
    """Takes one step."""

    blueprint: ClassVar[Blueprint[Any]] = Blueprint(
        "gpt5_plan_and_reflect", PLAN_POLICY, StepParams, take_step, needs_tool_calls=True
    )

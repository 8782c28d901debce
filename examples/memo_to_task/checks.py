"""What the database and the answer must hold after each scenario."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from memos.database import SAMPLES, begin_again, prepare
from memos.services import MemoService
from memos.values import Decision, MemoStatus, TaskStatus
from sqlalchemy import URL
from tool_layer.address import CREDENTIAL
from tool_layer.database import Database
from tool_layer.run_steps import steps_of

from examples.runner.world import Credentials, Played

_QUOTED = re.compile(r'"([^"]+)"')


@dataclass(frozen=True)
class Outcome:
    """What a scenario promises."""

    memo: MemoStatus
    tasks: tuple[TaskStatus, ...] = ()
    due: str | None = None
    project: str | None = None
    named: tuple[str, ...] = ()
    """What the reasons name."""
    refused: str = ""
    """What a tool said about the one call that it refused."""


OUTCOMES: Mapping[str, Outcome] = {
    "script": Outcome(MemoStatus.ACTIVE, (TaskStatus.PROGRESS,)),
    "delegated": Outcome(MemoStatus.ACTIVE, (TaskStatus.WAITING,), named=("waiting for his answer",)),
    "dated": Outcome(MemoStatus.ACTIVE, (TaskStatus.TODO,), due="2026-12-04", named=("4 December 2026", "2026-12-04")),
    "project": Outcome(
        MemoStatus.ACTIVE,
        (TaskStatus.TODO, TaskStatus.PROGRESS, TaskStatus.PROGRESS),
        project="Office move",
        refused="an active memo needs at least one task",
    ),
    "review": Outcome(MemoStatus.ACTIVE, (TaskStatus.DRAFT,), named=("Think it over",)),
    "not-actionable": Outcome(MemoStatus.IDEA),
}


class Desk:
    def __init__(self, url: URL) -> None:
        self._database = Database(url, prepare)
        self._service = MemoService(self._database)

    @property
    def credentials(self) -> Credentials:
        return {"memos": {CREDENTIAL: self._database.url.render_as_string(hide_password=False)}}

    def begin(self, _scenario: str) -> None:
        with Database(self._database.url, begin_again).session():
            pass

    def problems(self, played: Played) -> Iterator[str]:
        expected = OUTCOMES[played.scenario]
        sample = SAMPLES[played.scenario]
        for memo in self._service.memos():
            promised = expected.memo if memo.id == sample.id else MemoStatus.INBOX
            if memo.status is not promised:
                yield f"memo {memo.id} is {memo.status}, not {promised}"
        tasks = self._service.tasks(sample.id)
        if [task.status for task in tasks] != list(expected.tasks):
            yield f"the tasks are {[str(task.status) for task in tasks]}, expected is {list(map(str, expected.tasks))}"
        for task in tasks:
            due = None if task.due_date is None else task.due_date.isoformat()
            if (due, task.project_title) != (expected.due, expected.project):
                yield f"'{task.title}' is due {due}, of the project {task.project_title}"
        yield from self._problems_of_calls(expected)
        decision = self._service.decision(sample.id)
        if decision is None:
            yield "no decision about the memo is stored"
        else:
            yield from _problems_of_reasons(expected, decision, sample.text)
            yield from _problems_of_answer(decision, played)

    def _problems_of_calls(self, expected: Outcome) -> Iterator[str]:
        """Every call is in the audit trail, and only what had to be refused was."""
        steps = steps_of(self._database)
        refused = [step.output["result"]["message"] for step in steps if step.output["status"] == "error"]
        if len(refused) != bool(expected.refused) or any(expected.refused not in said for said in refused):
            yield f"the tools refused {refused}, expected is '{expected.refused}'"
        if any(step.tool == "create_tasks" for step in steps) != bool(expected.tasks):
            yield "create_tasks is called for an actionable memo, and only for that"
        if len(conversations := {step.conversation for step in steps}) != 1 or "" in conversations:
            yield f"the calls belong to the conversations {sorted(conversations)}, not to one"
        if (turns := {step.turn for step in steps}) != {1}:
            yield f"the calls belong to the turns {turns}, not to the first"


def _problems_of_reasons(expected: Outcome, decision: Decision, memo: str) -> Iterator[str]:
    reasons = [text for mapping in decision.decision_summary.mapping_reasons for text in mapping.reasons]
    missing = [words for words in expected.named if not any(words in text for text in reasons)]
    yield from (f"no reason names {words!r}" for words in missing)
    for words in (quoted for text in reasons for quoted in _QUOTED.findall(text)):
        if words not in memo:
            yield f"a reason quotes {words!r}, which the memo does not say"


def _problems_of_answer(decision: Decision, played: Played) -> Iterator[str]:
    (run,) = played.runs
    stored = decision.model_dump(mode="json")
    if run.error is not None:
        yield run.error.message
    elif run.outputs.variables.get("answer_tool") != "submit_decision":
        yield "the answer is not that of submit_decision"
    elif run.outputs.variables["structured_output"] != stored or json.loads(run.outputs.text) != stored:
        yield "the answer is not the decision that is stored"


@contextmanager
def world(folder: Path, database: URL | None = None) -> Iterator[Desk]:
    yield Desk(database or URL.create("sqlite", database=str(folder / "memos.sqlite3")))

"""What the database and the answer must hold after each scenario."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from memos.opening import begin_again, prepare
from memos.services.memos import MemoApplicationService
from memos.services.tasks import TaskApplicationService
from memos.storage.models import Base
from memos.storage.samples import SAMPLES
from memos.values.status import MemoStatus, TaskStatus
from memos.values.stored import StoredDecision, StoredTask
from sqlalchemy import URL, func, select
from tool_layer.address import CREDENTIAL
from tool_layer.database import Database
from tool_layer.run_steps import RunStep, steps_of

from examples.runner.world import Credentials, Played

_QUOTED = re.compile(r'"([^"]+)"')


@dataclass(frozen=True)
class Outcome:
    """What a scenario promises."""

    memo: MemoStatus
    tasks: tuple[TaskStatus, ...] = ()
    """The status of each, in the order of their ids."""
    due: str | None = None
    project: str | None = None
    named: tuple[str, ...] = ()
    """What the reasons name."""
    refused: tuple[str, ...] = ()
    """What a tool said about a call that it refused."""


OUTCOMES: Mapping[str, Outcome] = {
    "script": Outcome(MemoStatus.ACTIVE, (TaskStatus.PROGRESS,)),
    "delegated": Outcome(MemoStatus.ACTIVE, (TaskStatus.WAITING,), named=("waiting for his answer",)),
    "dated": Outcome(
        MemoStatus.ACTIVE, (TaskStatus.TODO,), due="2026-12-04T15:00:00", named=("4 December 2026", "2026-12-04T15:00")
    ),
    "project": Outcome(
        MemoStatus.ACTIVE,
        (TaskStatus.TODO, TaskStatus.PROGRESS, TaskStatus.PROGRESS),
        project="Office move",
        refused=("there is no task 4",),
    ),
    "review": Outcome(MemoStatus.ACTIVE, (TaskStatus.DRAFT,), named=("Think it over",)),
    "not-actionable": Outcome(MemoStatus.IDEA),
}


@dataclass(frozen=True)
class Desk:
    url: URL

    @property
    def credentials(self) -> Credentials:
        return {"memos": {CREDENTIAL: self.url.render_as_string(hide_password=False)}}

    def begin(self, _scenario: str) -> None:
        with Database(self.url, begin_again).session():
            pass

    def rows(self) -> int:
        tables = [*Base.metadata.sorted_tables, RunStep.__table__]
        with self._database.session() as session:
            return sum(session.scalars(select(func.count()).select_from(table)).one() for table in tables)

    def problems(self, played: Played) -> Iterator[str]:
        expected = OUTCOMES[played.scenario]
        memo_id = [*SAMPLES].index(played.scenario) + 1
        tasks = TaskApplicationService(self._database).tasks()
        decision = MemoApplicationService(self._database).decision(memo_id)
        yield from _problems_of_tasks(expected, tasks, memo_id)
        yield from self._problems_of_memos(expected, memo_id)
        yield from self._problems_of_calls(expected)
        if decision is None:
            yield f"no decision about memo {memo_id} is stored"
        else:
            yield from _problems_of_decision(expected, decision, tasks, SAMPLES[played.scenario])
            yield from _problems_of_answer(decision, played)

    def _problems_of_memos(self, expected: Outcome, memo_id: int) -> Iterator[str]:
        for memo in MemoApplicationService(self._database).memos():
            promised = expected.memo if memo.id == memo_id else MemoStatus.INBOX
            if memo.status is not promised:
                yield f"memo {memo.id} is {memo.status}, not {promised}"

    def _problems_of_calls(self, expected: Outcome) -> Iterator[str]:
        """Every call is in the audit trail, and only what had to be refused was."""
        steps = steps_of(self._database)
        refused = [step.output["result"]["message"] for step in steps if step.output["status"] == "error"]
        if len(refused) != len(expected.refused) or any(
            words not in said for words, said in zip(expected.refused, refused, strict=True)
        ):
            yield f"the tools refused {refused}, expected is {list(expected.refused)}"
        if any(step.tool == "create_tasks" for step in steps) != bool(expected.tasks):
            yield "create_tasks is called for an actionable memo, and only for that"
        if len(conversations := {step.conversation for step in steps}) != 1 or "" in conversations:
            yield f"the calls belong to the conversations {sorted(conversations)}, not to one"

    @property
    def _database(self) -> Database:
        return Database(self.url, prepare)


def _problems_of_tasks(expected: Outcome, tasks: Sequence[StoredTask], memo_id: int) -> Iterator[str]:
    if [task.status for task in tasks] != list(expected.tasks):
        yield f"the tasks are {[str(task.status) for task in tasks]}, expected is {list(map(str, expected.tasks))}"
    for task in tasks:
        due = None if task.due_date is None else task.due_date.isoformat()
        if (task.memo_id, due, task.project_title) != (memo_id, expected.due, expected.project):
            yield f"task {task.id} is of memo {task.memo_id}, due {due}, of the project {task.project_title}"


def _problems_of_decision(
    expected: Outcome, decision: StoredDecision, tasks: Sequence[StoredTask], memo: str
) -> Iterator[str]:
    if decision.payload.created_task_ids != [task.id for task in tasks]:
        yield f"the decision names the tasks {decision.payload.created_task_ids}"
    reasons = [text for reason in decision.payload.decision_summary.mapping_reasons for text in reason.reasons]
    for words in expected.named:
        if not any(words in text for text in reasons):
            yield f"no reason names {words!r}"
    for words in (quoted for text in reasons for quoted in _QUOTED.findall(text)):
        if words not in memo:
            yield f"a reason quotes {words!r}, which the memo does not say"


def _problems_of_answer(decision: StoredDecision, played: Played) -> Iterator[str]:
    (run,) = played.runs
    stored = decision.payload.model_dump(mode="json")
    if run.error is not None:
        yield run.error.message
    elif run.outputs.variables["stop_reason"] != "answered":
        yield f"the run ends with {run.outputs.variables['stop_reason']}"
    elif run.outputs.variables["structured_output"] != stored or json.loads(run.outputs.text) != stored:
        yield "the answer is not the decision that is stored"


@contextmanager
def world(folder: Path) -> Iterator[Desk]:
    yield Desk(URL.create("sqlite", database=str(folder / "memos.sqlite3")))

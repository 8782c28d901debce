"""What a decision has to be true to."""

from typing import Any

import pytest
from memos.values.rules import faults
from memos.values.schemas import Submission
from memos.values.status import MemoStatus, TaskStatus
from memos.values.stored import StoredMemo, StoredTask


def stored(task_id: int, title: str, status: TaskStatus, memo_id: int | None = None) -> StoredTask:
    return StoredTask(
        id=task_id,
        memo_id=memo_id,
        title=title,
        description=None,
        due_date=None,
        status=status,
        tags=(),
        project_title=None,
    )


CALL = stored(3, "Call", TaskStatus.PROGRESS)
THINK = stored(4, "Think", TaskStatus.DRAFT)


def reason(title: str, route: str | None, status: str) -> dict[str, Any]:
    return {"title": title, "route": route, "status": status, "reasons": ["one line"]}


RIGHT = [reason("Call", "progress", "progress"), reason("Think", None, "draft")]


def wrong(
    ids: list[int],
    reasons: list[dict[str, Any]],
    known: list[StoredTask],
    *,
    suggested: MemoStatus = MemoStatus.ACTIVE,
    status: MemoStatus = MemoStatus.ACTIVE,
) -> list[str]:
    summary = {"memo_insights": ["x"], "applied_rules": ["x"], "safety_notes": None, "confidence": None}
    submission = Submission.model_validate(
        {
            "memo_id": 1,
            "created_task_ids": ids,
            "suggested_memo_status": suggested,
            "decision_summary": {**summary, "mapping_reasons": reasons},
        }
    )
    return list(faults(submission, StoredMemo(id=1, text="Memo", status=status), known))


def test_a_decision_that_the_database_confirms_has_no_faults() -> None:
    assert wrong([3, 4], RIGHT, [CALL, THINK]) == []
    assert wrong([4, 3], RIGHT, [CALL.model_copy(update={"memo_id": 1}), THINK]) == []
    for status in (MemoStatus.IDEA, MemoStatus.INBOX, MemoStatus.ARCHIVE):
        assert wrong([], [], [], suggested=status, status=status) == []
    assert wrong([3], RIGHT[:1], [CALL], suggested=MemoStatus.ARCHIVE, status=MemoStatus.ARCHIVE) == []


@pytest.mark.parametrize(
    ("ids", "known", "sentence"),
    [
        ([3, 4, 9], [CALL, THINK], "there is no task 9: use the ids that create_tasks returned"),
        ([3, 4, 3], [CALL, THINK], "created_task_ids names the task 3 2 times"),
        ([3, 4], [CALL, THINK.model_copy(update={"memo_id": 2})], "the task 4 belongs to the memo 2"),
        (
            [3, 4],
            [CALL, THINK, stored(2, "Old", TaskStatus.TODO, memo_id=1)],
            "the task 2 belongs to this memo and is not named",
        ),
    ],
)
def test_every_id_is_known_free_and_named_once(ids: list[int], known: list[StoredTask], sentence: str) -> None:
    assert wrong(ids, RIGHT, known) == [sentence]


def test_an_active_memo_has_a_task() -> None:
    assert wrong([], [], []) == ["an active memo needs at least one task: call create_tasks first"]


@pytest.mark.parametrize("status", [MemoStatus.IDEA, MemoStatus.INBOX])
def test_a_memo_that_is_not_actionable_has_none(status: MemoStatus) -> None:
    assert wrong([3], RIGHT[:1], [CALL], suggested=status, status=status) == [
        f"a memo with tasks is active or archived, not {status}"
    ]


def test_a_status_that_is_only_planned_is_a_draft_of_a_decision() -> None:
    assert wrong([3], RIGHT[:1], [CALL], status=MemoStatus.INBOX) == [
        "the memo 1 has the status inbox, not active: call update_memo_status first"
    ]


@pytest.mark.parametrize(
    ("reasons", "sentences"),
    [
        ([], ["mapping_reasons lacks the task 'Call'"]),
        (
            [reason("Phone", "progress", "progress")],
            [
                "mapping_reasons lacks the task 'Call'",
                "mapping_reasons has 'Phone', which is not the title of a created task",
            ],
        ),
        ([reason("Call", "progress", "todo")], ["the task 'Call' is stored as progress, not as todo"]),
        (
            [reason("Call", "waiting", "progress")],
            ["the task 'Call' is progress, and by the route waiting it would be waiting"],
        ),
        ([reason("Call", None, "progress")], ["the task 'Call' is progress, and without a route it would be draft"]),
    ],
)
def test_each_task_has_a_reason_with_its_stored_status(reasons: list[dict[str, Any]], sentences: list[str]) -> None:
    assert wrong([3], reasons, [CALL]) == sentences


def test_two_tasks_of_one_title_need_two_reasons() -> None:
    again = CALL.model_copy(update={"id": 5})

    assert wrong([3, 5], [RIGHT[0], RIGHT[0]], [CALL, again]) == []
    assert wrong([3, 5], RIGHT[:1], [CALL, again]) == ["mapping_reasons lacks the task 'Call'"]
    assert wrong([3], [RIGHT[0], RIGHT[0]], [CALL]) == [
        "mapping_reasons has 'Call', which is not the title of a created task"
    ]

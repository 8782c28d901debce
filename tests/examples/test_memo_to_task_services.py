"""What the services of memo_to_task store, refuse and hand out, on both databases."""

from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import Any
from uuid import UUID

import pytest
from memos.database import prepare
from memos.decisions import LOOK_AT_IT
from memos.services import MemoService
from memos.tables import TaskRow
from memos.values import Decision, MemoStatus, Route, Submission, Task, TaskInput, TaskStatus
from sqlalchemy import URL, select
from tool_layer.database import Database
from tool_layer.errors import RefusedError


@pytest.fixture
def database(database_url: URL) -> Database:
    return Database(database_url, prepare)


@pytest.fixture
def service(database: Database) -> MemoService:
    return MemoService(database)


@pytest.fixture
def memo(service: MemoService) -> UUID:
    return service.add("Asked Kenji for quotes, waiting for his answer.").id


def task(title: str, **fields: object) -> TaskInput:
    return TaskInput.model_validate({"title": title, **fields})


def submission(memo_id: UUID, *titles: str) -> Submission:
    return Submission.model_validate(
        {
            "memo_id": memo_id,
            "memo_insights": ["Kenji has it"],
            "applied_rules": [{"rule": "delegated→WAITING", "quote": "waiting for  his answer"}],
            "task_reasons": [{"title": title, "reasons": [f"why {title}"]} for title in titles],
            "confidence": "high",
        }
    )


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"route": "next_action"}, TaskStatus.TODO),
        ({"route": "progress"}, TaskStatus.PROGRESS),
        ({"route": "waiting"}, TaskStatus.WAITING),
        ({"route": "calendar", "due_date": "2026-12-04"}, TaskStatus.TODO),
        ({"route": "waiting", "needs_review": True}, TaskStatus.DRAFT),
        ({}, TaskStatus.DRAFT),
    ],
)
def test_a_title_is_enough_each_route_has_its_status_and_a_draft_keeps_its_route(
    service: MemoService, memo: UUID, fields: dict[str, Any], status: TaskStatus
) -> None:
    (created,) = service.create_tasks(memo, [task("Quotes", **fields)])

    assert (created.status, created.route) == (status, fields.get("route"))
    assert service.tasks(memo) == [created]


def test_a_task_is_stored_as_it_was_sent_and_found_by_its_day(
    service: MemoService, memo: UUID, database: Database
) -> None:
    fields: dict[str, Any] = {"description": "Bring the card.", "project_title": "Teeth", "route": "calendar"}
    sent = task("歯医者", **fields, tags=["health", "町"], due_date="2026-12-04")
    later = task("Post", due_date="2026-12-05")

    first, _ = service.create_tasks(memo, [sent, later])

    assert first == Task(
        **{**fields, "id": first.id, "memo_id": memo, "title": "歯医者", "status": TaskStatus.TODO},
        due_date=date(2026, 12, 4),
        tags=("health", "町"),
    )
    with database.session() as session:
        due = session.scalars(select(TaskRow.title).where(TaskRow.due_date < date(2026, 12, 5))).all()
    assert due == ["歯医者"]


def test_the_decision_is_made_of_what_the_database_holds_and_the_reasons(service: MemoService, memo: UUID) -> None:
    tasks = service.create_tasks(memo, [task("Quotes", route="waiting"), task("Call"), task("Call", route="progress")])
    service.update_status(memo, MemoStatus.ACTIVE)

    decision = service.decide(submission(memo, "Call", "Quotes", "Call"), "c-1")
    assert decision.decision_summary.quotations == ("waiting for  his answer",)

    assert service.decision(memo) == decision
    assert (decision.created_task_ids, decision.suggested_memo_status) == (
        tuple(each.id for each in tasks),
        MemoStatus.ACTIVE,
    )
    assert [(each.title, each.route, each.status) for each in decision.decision_summary.mapping_reasons] == [
        ("Quotes", Route.WAITING, TaskStatus.WAITING),
        ("Call", Route.PROGRESS, TaskStatus.PROGRESS),
    ]
    assert decision.decision_summary.mapping_reasons[0].reasons == ("why Quotes",)

    service.update_status(memo, MemoStatus.ARCHIVE)
    later = service.decide(submission(memo, "Quotes", "Call", "Call"), "c-2")
    assert service.decision(memo) == later
    assert later.suggested_memo_status is MemoStatus.ARCHIVE


@pytest.mark.parametrize(
    ("status", "tasks", "reasons", "fault"),
    [
        ("inbox", [], [], "the memo is still in the inbox: call create_tasks if something can be done about it"),
        ("active", [], [], "an active memo needs at least one task: call create_tasks"),
        ("idea", ["Call"], ["Call"], "a memo with tasks is active or archived: call update_memo_status"),
        ("active", ["Call"], [], "task_reasons lacks the task 'Call'"),
        ("active", ["Call", "Call"], ["Call"], "task_reasons lacks the task 'Call'"),
        ("active", ["Call"], ["Call", "Fly"], "task_reasons has 'Fly', which is not the title of a task of this memo"),
    ],
)
def test_a_decision_that_the_database_does_not_confirm_is_not_stored(
    service: MemoService, memo: UUID, *, status: str, tasks: list[str], reasons: list[str], fault: str
) -> None:
    if tasks:
        service.create_tasks(memo, [task(title, route="waiting") for title in tasks])
    service.update_status(memo, MemoStatus(status))

    with pytest.raises(RefusedError, match=r"^The decision was not stored: ") as raised:
        service.decide(submission(memo, *reasons), "")

    assert fault in str(raised.value)
    assert service.decision(memo) is None


def applied(memo: UUID, rule: str, quote: str) -> Submission:
    rules = [{"rule": rule, "quote": quote}]
    return Submission.model_validate({"memo_id": memo, "memo_insights": ["a wish"], "applied_rules": rules})


@pytest.mark.parametrize("status", [MemoStatus.IDEA, MemoStatus.ARCHIVE])
@pytest.mark.parametrize(
    ("rule", "quote"),
    [("not_actionable→idea", "It is only a wish."), ("delegated→WAITING", "waiting for his answer")],
    ids=["words that the memo does not say", "another rule"],
)
def test_a_memo_that_would_end_without_evidence_becomes_a_draft_for_a_person(
    service: MemoService, memo: UUID, status: MemoStatus, rule: str, quote: str
) -> None:
    service.update_status(memo, status)

    decision = service.decide(applied(memo, rule, quote), "c-1")

    (draft,) = service.tasks(memo)
    assert (draft.status, draft.title) == (
        TaskStatus.DRAFT,
        "Review: Asked Kenji for quotes, waiting for his answer.",
    )
    assert decision.created_task_ids == (draft.id,)
    assert decision.suggested_memo_status is MemoStatus.ACTIVE
    assert decision.decision_summary.mapping_reasons == ()
    assert decision.decision_summary.safety_notes == (LOOK_AT_IT,)
    assert service.decision(memo) == decision


def test_a_memo_whose_words_say_so_is_an_idea(service: MemoService, memo: UUID) -> None:
    service.update_status(memo, MemoStatus.IDEA)

    decision = service.decide(applied(memo, "not_actionable→idea", "Asked Kenji for quotes"), "c-1")

    assert decision.suggested_memo_status is MemoStatus.IDEA
    assert service.tasks(memo) == []


@pytest.mark.parametrize(
    ("rule", "quote", "fault"),
    [
        ("delegated→WAITING", "he has it", "the memo does not say 'he has it': quote its own words"),
        ("not_actionable→idea", "Asked Kenji", "not_actionable→idea is for a memo without a task"),
    ],
)
def test_a_rule_rests_on_words_of_the_memo(service: MemoService, memo: UUID, rule: str, quote: str, fault: str) -> None:
    service.create_tasks(memo, [task("Quotes")])
    service.update_status(memo, MemoStatus.ACTIVE)

    with pytest.raises(RefusedError, match=fault):
        service.decide(applied(memo, rule, quote), "")


def test_a_rule_is_one_of_the_list() -> None:
    with pytest.raises(ValueError, match="delegated→WAITING"):
        applied(UUID(int=1), "because", "Asked Kenji")


def test_a_decision_from_before_there_were_quotations_is_still_read() -> None:
    mapping = [
        {"title": "Call", "route": None, "status": "draft", "reasons": ["x"]},
        {"title": "Ask", "route": "waiting", "status": "waiting", "reasons": ["y"]},
    ]
    summary = {"memo_insights": ["x"], "applied_rules": ["any"], "mapping_reasons": mapping}
    stored = {"created_task_ids": [], "suggested_memo_status": "active", "decision_summary": summary}
    more = {"safety_notes": None, "confidence": None}

    read = Decision.model_validate({**stored, "decision_summary": {**summary, **more}})

    assert [each.title for each in read.decision_summary.mapping_reasons] == ["Ask"]
    assert read.decision_summary.quotations == ()


def test_a_memo_that_was_processed_before_keeps_its_tasks(service: MemoService, memo: UUID) -> None:
    first = service.create_tasks(memo, [task("Quotes", route="waiting")])

    with pytest.raises(RefusedError) as raised:
        service.create_tasks(memo, [task("Ask for quotes")])

    assert str(raised.value) == (
        "Nothing was created: the memo was processed before and has its tasks: 'Quotes' (waiting). Go on with them."
    )
    assert service.tasks(memo) == first


def test_of_several_calls_at_once_only_one_makes_the_tasks_of_a_memo(service: MemoService, memo: UUID) -> None:
    def created(_number: int) -> int:
        try:
            return len(service.create_tasks(memo, [task("Quotes"), task("Call")]))
        except RefusedError:
            return 0

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(created, range(4))) == [0, 0, 0, 2]
    assert [each.title for each in service.tasks(memo)] == ["Quotes", "Call"]

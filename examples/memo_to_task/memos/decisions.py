"""What became of a memo: ids, titles, routes and statuses are the database's, the reasons are the model's. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence

from .values import Decision, DecisionSummary, MappingReason, Memo, MemoStatus, Submission, Task


def faults(submission: Submission, memo: Memo, tasks: Sequence[Task]) -> Iterator[str]:
    """What the model has to do first, or to say otherwise. `tasks`: all of the memo."""
    if memo.status is MemoStatus.INBOX:
        yield (
            "the memo is still in the inbox: call create_tasks if something can be done about it, then "
            "update_memo_status"
        )
    if memo.status is MemoStatus.ACTIVE and not tasks:
        yield "an active memo needs at least one task: call create_tasks"
    if memo.status is MemoStatus.IDEA and tasks:
        yield "a memo with tasks is active or archived: call update_memo_status"
    stored = Counter(task.title for task in tasks)
    given = Counter(reasons.title for reasons in submission.task_reasons)
    yield from (f"task_reasons lacks the task '{title}'" for title in stored - given)
    yield from (
        f"task_reasons has '{title}', which is not the title of a task of this memo" for title in given - stored
    )


def decision(submission: Submission, memo: Memo, tasks: Sequence[Task]) -> Decision:
    """Of a submission without faults."""
    unused = list(submission.task_reasons)
    mapping = []
    for task in tasks:
        given = next(each for each in unused if each.title == task.title)
        unused.remove(given)
        mapping.append(
            MappingReason(title=task.title, route=task.route, status=task.status, reasons=tuple(given.reasons))
        )
    return Decision(
        created_task_ids=tuple(task.id for task in tasks),
        suggested_memo_status=memo.status,
        decision_summary=DecisionSummary(
            memo_insights=tuple(submission.memo_insights),
            applied_rules=tuple(submission.applied_rules),
            mapping_reasons=tuple(mapping),
            safety_notes=None if submission.safety_notes is None else tuple(submission.safety_notes),
            confidence=submission.confidence,
        ),
    )

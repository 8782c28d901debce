"""What a decision has to be true to, as sentences about what is wrong. Pure: the caller has read the database.

An intermediate draft does not pass: its tasks are not created yet, or the memo has not got its status.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from .schemas import MappingReason, Submission
from .status import STATUS_OF, MemoStatus
from .stored import StoredMemo, StoredTask

TASKLESS = frozenset({MemoStatus.INBOX, MemoStatus.IDEA})
"""A memo with such a status is not actionable."""


def faults(submission: Submission, memo: StoredMemo, known: Sequence[StoredTask]) -> Iterator[str]:
    """`known`: those of the named tasks that exist, and all that belong to the memo."""
    yield from _faults_of_ids(submission, {task.id: task for task in known})
    yield from _faults_of_status(submission, memo)
    yield from _faults_of_reasons(submission, [task for task in known if task.id in submission.created_task_ids])


def _faults_of_ids(submission: Submission, known: Mapping[int, StoredTask]) -> Iterator[str]:
    ids = submission.created_task_ids
    for task_id, times in Counter(ids).items():
        if times > 1:
            yield f"created_task_ids names the task {task_id} {times} times"
        if task_id not in known:
            yield f"there is no task {task_id}: use the ids that create_tasks returned"
        elif known[task_id].memo_id not in {None, submission.memo_id}:
            yield f"the task {task_id} belongs to the memo {known[task_id].memo_id}"
    for task in known.values():
        if task.memo_id == submission.memo_id and task.id not in ids:
            yield f"the task {task.id} belongs to this memo and is not named"


def _faults_of_status(submission: Submission, memo: StoredMemo) -> Iterator[str]:
    suggested = submission.suggested_memo_status
    if suggested != memo.status:
        yield f"the memo {memo.id} has the status {memo.status}, not {suggested}: call update_memo_status first"
    if suggested is MemoStatus.ACTIVE and not submission.created_task_ids:
        yield "an active memo needs at least one task: call create_tasks first"
    if suggested in TASKLESS and submission.created_task_ids:
        yield f"a memo with tasks is active or archived, not {suggested}"


def _faults_of_reasons(submission: Submission, tasks: Sequence[StoredTask]) -> Iterator[str]:
    unused = list(submission.decision_summary.mapping_reasons)
    for task in tasks:
        reason = _reason_for(task, unused)
        if reason is None:
            yield f"mapping_reasons lacks the task '{task.title}'"
        else:
            unused.remove(reason)
            yield from _faults_of_reason(reason, task)
    for reason in unused:
        yield f"mapping_reasons has '{reason.title}', which is not the title of a created task"


def _reason_for(task: StoredTask, unused: Sequence[MappingReason]) -> MappingReason | None:
    """By its title; two tasks may have the same one."""
    titled = [reason for reason in unused if reason.title == task.title]
    return next((reason for reason in titled if reason.status == task.status), next(iter(titled), None))


def _faults_of_reason(reason: MappingReason, task: StoredTask) -> Iterator[str]:
    if reason.status != task.status:
        yield f"the task '{task.title}' is stored as {task.status}, not as {reason.status}"
    elif STATUS_OF[reason.route] != task.status:
        without = "without a route" if reason.route is None else f"by the route {reason.route}"
        yield f"the task '{task.title}' is {task.status}, and {without} it would be {STATUS_OF[reason.route]}"

"""What became of a memo: ids, titles, routes and statuses are the database's, the reasons are the model's. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence

from .values import Decision, DecisionSummary, MappingReason, Memo, MemoStatus, Rule, Submission, Task, TaskInput

LOOK_AT_IT = "The model found nothing to do and quoted none of the memo's words for that: look at the draft."
_LONGEST = 150
"""Characters of a memo in the title of its draft."""


def ends_without_evidence(submission: Submission, memo: Memo, tasks: Sequence[Task]) -> bool:
    """Whether the memo would end without a task because a model says so, and not because of the memo's own words."""
    has_ended = memo.status in {MemoStatus.IDEA, MemoStatus.ARCHIVE} and not tasks
    return has_ended and not any(
        applied.rule is Rule.NOT_ACTIONABLE and _is_quoted(applied.quote, memo) for applied in submission.applied_rules
    )


def draft_of(memo: Memo) -> TaskInput:
    """A task for a person, who decides what the memo is."""
    return TaskInput(title=f"Review: {_words(memo.text)[:_LONGEST]}", needs_review=True)


def _is_quoted(quote: str, memo: Memo) -> bool:
    return _words(quote) in _words(memo.text)


def _words(text: str) -> str:
    return " ".join(text.split())


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
    if tasks and any(each.rule is Rule.NOT_ACTIONABLE for each in submission.applied_rules):
        yield f"the rule {Rule.NOT_ACTIONABLE} is for a memo without a task"
    for applied in submission.applied_rules:
        if not _is_quoted(applied.quote, memo):
            yield f"the memo does not say '{applied.quote}': quote its own words for {applied.rule}"
    with_route = Counter(task.title for task in tasks if task.route is not None)
    stored = Counter(task.title for task in tasks)
    given = Counter(reasons.title for reasons in submission.task_reasons)
    yield from (f"task_reasons lacks the task '{title}'" for title in with_route - given)
    yield from (
        f"task_reasons has '{title}', which is not the title of a task of this memo" for title in given - stored
    )


def decision_to_review(submission: Submission, memo: Memo, draft: Task) -> Decision:
    """The decision about a memo that would have ended without evidence: a draft alone, and notes that say why."""
    notes = (*(submission.safety_notes or ())[:4], LOOK_AT_IT)
    summary = DecisionSummary(
        memo_insights=tuple(submission.memo_insights),
        applied_rules=(Rule.REVIEW_REQUESTED,),
        mapping_reasons=(),
        safety_notes=notes,
        confidence="low",
    )
    return Decision(created_task_ids=(draft.id,), suggested_memo_status=memo.status, decision_summary=summary)


def decision(submission: Submission, memo: Memo, tasks: Sequence[Task]) -> Decision:
    """The decision of a submission without faults. A task without a route has no reasons for one."""
    unused = list(submission.task_reasons)
    mapping = []
    for task in tasks:
        if task.route is None:
            continue
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
            applied_rules=tuple(applied.rule for applied in submission.applied_rules),
            quotations=tuple(applied.quote for applied in submission.applied_rules),
            mapping_reasons=tuple(mapping),
            safety_notes=None if submission.safety_notes is None else tuple(submission.safety_notes),
            confidence=submission.confidence,
        ),
    )

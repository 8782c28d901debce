"""What a person reads in the terminal: a reply with its sources, what a sync did, and earlier answers."""

from collections.abc import Iterator, Sequence

from answering.application.generate_and_reply import Reply
from answering.application.syncing import Synced
from answering.domain.answer import Answer
from answering.domain.ports import Page


def reply_lines(reply: Reply) -> Iterator[str]:
    yield reply.text
    if reply.answer is not None and reply.answer.sources:
        yield ""
        yield from _source_lines(reply.answer)


def _source_lines(answer: Answer) -> Iterator[str]:
    yield "Sources"
    for source in answer.sources:
        number = source.id.value.rpartition("-")[2]
        yield f"[{number}] {source.document_title} ({source.document_id}, score {source.score:.2f})"


def sync_lines(synced: Synced) -> Iterator[str]:
    for sign, names in (("+", synced.added), ("~", synced.changed), ("-", synced.removed)):
        yield from (f"{sign} {name}" for name in names)
    yield (
        f"{len(synced.added)} added, {len(synced.changed)} changed, {len(synced.removed)} removed, "
        f"{len(synced.unchanged)} unchanged"
    )


def page_lines(page: Page, number: int) -> Iterator[str]:
    yield from answer_lines(page.answers)
    yield f"Page {number}: {len(page.answers)} of {page.total} answers"


def answer_lines(answers: Sequence[Answer]) -> Iterator[str]:
    for answer in answers:
        if answer.reason is not None:
            yield _unanswered_line(answer)
            continue
        yield f"{answer.generated_at:%Y-%m-%d %H:%M} UTC  {answer.id}  {answer.question}"
        yield from (f"    {line}" for line in answer.content.splitlines())
        yield from (f"    {source.id}  {source.document_id}" for source in answer.sources)


def _unanswered_line(answer: Answer) -> str:
    return f"{answer.generated_at:%Y-%m-%d %H:%M} UTC  unanswered: {answer.reason}  {answer.question}"

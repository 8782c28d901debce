"""The repository of the answers."""

from datetime import UTC, date, datetime, time

from sqlalchemy import ColumnElement, func, select, true
from sqlalchemy.orm import selectinload
from tool_layer.database import Database

from answering.domain.answer import Answer, AnswerSource
from answering.domain.errors import SystemCode
from answering.domain.identifiers import AnswerId, DocumentId, SourceId
from answering.domain.ports import Page
from answering.domain.question import Question

from .failures import raised_as
from .tables import AnswerRow, SourceRow


class AnswerRepository:
    def __init__(self, database: Database) -> None:
        self._database = database

    def save(self, answer: Answer) -> None:
        """With its sources, as a whole or not at all.

        Raises:
            AnswerSystemError: ANSWER_SAVE_FAILED.
        """
        with raised_as(SystemCode.SAVE_FAILED), self._database.session() as session:
            session.add(_row(answer))

    def recent(self, *, page: int = 1, size: int = 20) -> Page:
        return self._page(true(), page, size)

    def between(self, first: date, last: date, *, page: int = 1, size: int = 20) -> Page:
        """Those of the days from `first` to `last`, both included, in UTC."""
        begin, end = datetime.combine(first, time.min), datetime.combine(last, time.max)
        return self._page((AnswerRow.generated_at >= begin) & (AnswerRow.generated_at <= end), page, size)

    def _page(self, wanted: ColumnElement[bool], page: int, size: int) -> Page:
        if page < 1 or size < 1:
            raise ValueError("Pages and their sizes count from 1.")
        query = (
            select(AnswerRow)
            .where(wanted)
            .order_by(AnswerRow.generated_at.desc(), AnswerRow.id)
            .limit(size)
            .offset((page - 1) * size)
            .options(selectinload(AnswerRow.sources))
        )
        with self._database.session() as session:
            total = session.scalar(select(func.count()).select_from(AnswerRow).where(wanted)) or 0
            return Page(tuple(_answer(row) for row in session.scalars(query)), total)


def _row(answer: Answer) -> AnswerRow:
    return AnswerRow(
        id=answer.id.value,
        question=answer.question.text,
        content=answer.content,
        generated_at=answer.generated_at.astimezone(UTC).replace(tzinfo=None),
        sources=[
            SourceRow(
                id=source.id.value,
                position=position,
                document_id=source.document_id.value,
                document_title=source.document_title,
                relevant_content=source.relevant_content,
                score=source.score,
            )
            for position, source in enumerate(answer.sources)
        ],
    )


def _answer(row: AnswerRow) -> Answer:
    sources = tuple(
        AnswerSource(
            SourceId(source.id),
            DocumentId(source.document_id),
            source.document_title,
            source.relevant_content,
            source.score,
        )
        for source in row.sources
    )
    return Answer(AnswerId(row.id), Question(row.question), row.content, sources, row.generated_at.replace(tzinfo=UTC))

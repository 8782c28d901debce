"""The repository of the answers: the port of the domain."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from sqlalchemy import Select, func, select
from sqlalchemy.orm import selectinload
from tool_layer.database import Database

from answering.domain.answer import Answer, AnswerSource
from answering.domain.errors import BusinessCode, SystemCode
from answering.domain.ports import Page
from answering.domain.values import AnswerContent, AnswerId, DocumentId, Question, SimilarityScore, SourceId

from .failures import raised_as
from .tables import AnswerRow, SourceRow


class AnswerRepository:
    def __init__(self, database: Database) -> None:
        self._database = database

    def save(self, answer: Answer) -> None:
        with raised_as(SystemCode.SAVE_FAILED), self._database.session() as session:
            session.add(_row(answer))

    def between(self, begin: datetime, end: datetime, *, page: int = 1, size: int = 20) -> Page:
        wanted = (AnswerRow.generated_at >= _stored(begin)) & (AnswerRow.generated_at < _stored(end))
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

    def recent(self, limit: int) -> Sequence[Answer]:
        if limit < 1:
            raise ValueError("A limit counts from 1.")
        return self._newest_first(select(AnswerRow).limit(limit))

    def unanswered(self) -> Sequence[Answer]:
        return self._newest_first(select(AnswerRow).where(AnswerRow.reason.is_not(None)))

    def _newest_first(self, query: Select[AnswerRow]) -> Sequence[Answer]:
        ordered = query.order_by(AnswerRow.generated_at.desc(), AnswerRow.id).options(selectinload(AnswerRow.sources))
        with self._database.session() as session:
            return [_answer(row) for row in session.scalars(ordered)]


def _row(answer: Answer) -> AnswerRow:
    return AnswerRow(
        id=answer.id.value,
        question=answer.question.text,
        content=answer.content,
        generated_at=_stored(answer.generated_at),
        reason=answer.reason,
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
            SimilarityScore(source.score),
        )
        for source in row.sources
    )
    content = AnswerContent(row.content)
    generated_at = row.generated_at.replace(tzinfo=UTC)
    answer = Answer(AnswerId(row.id), Question(row.question), content, sources, generated_at)
    if row.reason is None:
        return answer
    return replace(answer, reason=BusinessCode(row.reason))


def _stored(instant: datetime) -> datetime:
    return instant.astimezone(UTC).replace(tzinfo=None)

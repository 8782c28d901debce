"""An answer and the sources that it cites."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from .errors import BusinessCode
from .retrieval import RetrievalContext
from .values import AnswerContent, AnswerId, DocumentId, Question, SimilarityScore, SourceId

_CITATION = re.compile(r"\[\s*(\d{1,4}(?:\s*[,、]\s*\d{1,4})*)\s*\]")


@dataclass(frozen=True)
class AnswerSource:
    id: SourceId
    document_id: DocumentId
    document_title: str
    relevant_content: str
    score: SimilarityScore


@dataclass(frozen=True)
class Answer:
    id: AnswerId
    question: Question
    content: AnswerContent
    sources: tuple[AnswerSource, ...]
    generated_at: datetime

    def __post_init__(self) -> None:
        if self.generated_at.tzinfo is None:
            raise ValueError("The time of an answer needs a time zone.")

    @classmethod
    def of(cls, answer_id: AnswerId, context: RetrievalContext, content: str, generated_at: datetime) -> Self:
        """With the sources that the content cites as [1] or [2, 3], or with all of them if it cites none.

        Raises:
            AnswerBusinessError: ANSWER_EMPTY_CONTENT.
        """
        numbered = dict(enumerate(context.documents, start=1))
        cited = _cited_numbers(content) & numbered.keys() or numbered.keys()
        sources = tuple(
            AnswerSource(answer_id.source(number), document.id, document.title, document.content, document.score)
            for number, document in numbered.items()
            if number in cited
        )
        return cls(answer_id, context.question, AnswerContent(content), sources, generated_at)


@dataclass(frozen=True)
class Unanswered:
    """A question for which no model was asked, and why."""

    question: Question
    reason: BusinessCode
    asked_at: datetime


def _cited_numbers(content: str) -> set[int]:
    return {int(digits) for numbers in _CITATION.findall(content) for digits in re.findall(r"\d+", numbers)}

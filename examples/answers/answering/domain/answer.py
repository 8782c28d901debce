"""An answer and the sources that it cites."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from .errors import BusinessCode
from .retrieval import RetrievalContext
from .values import AnswerContent, AnswerId, DocumentId, Language, Question, SimilarityScore, SourceId

_NO_DOCUMENTS = {
    Language.ENGLISH: "No document says anything about: {question}. Ask in other words.",
    Language.JAPANESE: "該当する情報が見つかりませんでした。別の言葉でもう一度お尋ねください。",
}
_NO_INDEX = {
    Language.ENGLISH: "The index has not been built. An operator builds it from a folder of Markdown files with: "
    "{command}",
    Language.JAPANESE: "索引がまだ作成されていません。"
    "管理者が次のコマンドで Markdown のフォルダーから作成できます：{command}",
}
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
    reason: BusinessCode | None = None
    """Why no model was asked; None for the answer of a model."""

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

    @classmethod
    def without_documents(cls, answer_id: AnswerId, question: Question, generated_at: datetime) -> Self:
        """The answer to a question that no document fits, in the question's language."""
        content = _NO_DOCUMENTS[question.language].format(question=question)
        return cls(answer_id, question, AnswerContent(content), (), generated_at, BusinessCode.NO_RELEVANT_DOCUMENTS)

    @classmethod
    def without_index(cls, answer_id: AnswerId, question: Question, command: str, generated_at: datetime) -> Self:
        """The answer while there is no index, in the question's language; `command` builds one."""
        content = _NO_INDEX[question.language].format(command=command)
        return cls(answer_id, question, AnswerContent(content), (), generated_at, BusinessCode.INDEX_NOT_AVAILABLE)


def _cited_numbers(content: str) -> set[int]:
    return {int(digits) for numbers in _CITATION.findall(content) for digits in re.findall(r"\d+", numbers)}

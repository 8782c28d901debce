"""What an answer may rest on: the documents that were found for a question."""

from dataclasses import dataclass

from .errors import AnswerBusinessError, BusinessCode
from .values import DocumentId, Question, SimilarityScore


@dataclass(frozen=True)
class RetrievedDocument:
    """The passages of one document that fit the question, in the document's order."""

    id: DocumentId
    title: str
    content: str
    score: SimilarityScore
    """The score of its best passage: 1 for the first in both rankings, about 0.5 for the first in one."""


@dataclass(frozen=True)
class RetrievalContext:
    """A question and the documents for it, the best first."""

    question: Question
    documents: tuple[RetrievedDocument, ...]

    def __post_init__(self) -> None:
        """Raises AnswerBusinessError, ANSWER_NO_RELEVANT_DOCUMENTS."""
        if not self.documents:
            raise AnswerBusinessError(
                BusinessCode.NO_RELEVANT_DOCUMENTS, f"No document says anything about: {self.question}"
            )

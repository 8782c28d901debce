"""From search results to the context of an answer, as a pure function."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from .errors import AnswerBusinessError, BusinessCode
from .identifiers import DocumentId
from .question import Question
from .score import checked_score

LEAST_SCORE = 0.19
"""Below this a passage shares only common words with the question. The tests hold it against the documents here."""
MOST_DOCUMENTS = 4
MOST_PASSAGES = 3
"""Of one document."""


@dataclass(frozen=True)
class SearchResult:
    """A passage that the search found."""

    document_id: DocumentId
    document_title: str
    position: int
    """Of the passage in its document, from 0."""
    text: str
    score: float

    def __post_init__(self) -> None:
        checked_score(self.score)


@dataclass(frozen=True)
class RetrievedDocument:
    """The passages of one document that fit the question, in the document's order."""

    id: DocumentId
    title: str
    content: str
    score: float
    """That of its best passage."""

    def __post_init__(self) -> None:
        checked_score(self.score)


@dataclass(frozen=True)
class RetrievalContext:
    """What an answer may rest on: a question and the documents for it, the best first."""

    question: Question
    documents: tuple[RetrievedDocument, ...]

    def __post_init__(self) -> None:
        """Raises AnswerBusinessError, ANSWER_NO_RELEVANT_DOCUMENTS."""
        if not self.documents:
            raise AnswerBusinessError(
                BusinessCode.NO_RELEVANT_DOCUMENTS,
                f"No document says anything about: {self.question}. Ask in other words.",
            )


def retrieve(question: Question, results: Iterable[SearchResult]) -> RetrievalContext:
    """The best documents among the results, each with its best passages.

    Raises:
        AnswerBusinessError: ANSWER_NO_RELEVANT_DOCUMENTS.
    """
    relevant = sorted((each for each in results if each.score >= LEAST_SCORE), key=_by_document)
    documents = [_document(list(passages)) for _, passages in groupby(relevant, key=lambda each: each.document_id)]
    documents.sort(key=lambda each: (-each.score, each.id.value))
    return RetrievalContext(question, tuple(documents[:MOST_DOCUMENTS]))


def _by_document(result: SearchResult) -> tuple[str, float, int]:
    return (result.document_id.value, -result.score, result.position)


def _document(best_first: list[SearchResult]) -> RetrievedDocument:
    best = best_first[0]
    in_order = sorted(best_first[:MOST_PASSAGES], key=lambda each: each.position)
    content = "\n\n".join(each.text for each in in_order)
    return RetrievedDocument(best.document_id, best.document_title, content, best.score)

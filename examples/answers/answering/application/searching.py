"""The search: a question → the context for its answer. A question that finds nothing leaves a record."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from answering.domain.answer import Unanswered
from answering.domain.errors import AnswerBusinessError, AnswerSystemError, BusinessCode
from answering.domain.ports import UnansweredQuestions
from answering.domain.retrieval import RetrievalContext, SearchResult, retrieve
from answering.domain.values import Question

HOW_TO_BUILD = "python -m examples.answers sync DIR"
MOST_RESULTS = 20
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class SearchQuery:
    """What the index is asked."""

    text: str
    most: int = MOST_RESULTS
    """Passages, by letters and by meaning each."""


class Search(Protocol):
    def search(self, query: SearchQuery, /) -> Sequence[SearchResult]:
        """The best passages of the index.

        Raises:
            AnswerBusinessError: ANSWER_INDEX_NOT_AVAILABLE.
            AnswerSystemError: ANSWER_CONTEXT_RETRIEVAL_FAILED.
        """
        ...


@dataclass(frozen=True)
class SearchService:
    search: Search
    unanswered: UnansweredQuestions
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def find(self, question: Question) -> RetrievalContext:
        """The documents that an answer may rest on.

        Raises:
            AnswerBusinessError: ANSWER_INDEX_NOT_AVAILABLE or ANSWER_NO_RELEVANT_DOCUMENTS; either is recorded.
            AnswerSystemError: ANSWER_CONTEXT_RETRIEVAL_FAILED.
        """
        try:
            return retrieve(question, self.search.search(SearchQuery(question.text)))
        except AnswerBusinessError as error:
            self._record(Unanswered(question, error.code, self.now()))
            raise

    def _record(self, unanswered: Unanswered) -> None:
        try:
            self.unanswered.record(unanswered)
        except AnswerSystemError as error:
            _LOG.error("An unanswered question was not recorded. %s", error)


def explained(error: AnswerBusinessError) -> str:
    """What the person who asks reads, and the model in place of a tool's result."""
    if error.code is BusinessCode.INDEX_NOT_AVAILABLE:
        return f"{error.sentence} An operator builds it from a folder of Markdown files with: {HOW_TO_BUILD}"
    return error.sentence

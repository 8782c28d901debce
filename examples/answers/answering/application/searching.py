"""The search: a question → the context for its answer, or the answer that there is none."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from answering.domain.answer import Answer
from answering.domain.errors import AnswerBusinessError, BusinessCode
from answering.domain.retrieval import RetrievalContext
from answering.domain.values import AnswerId, Question

from .history import History
from .retrieving import SearchResult, relevant_documents

HOW_TO_BUILD = "python -m examples.answers sync DIR"
MOST_RESULTS = 20


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
    history: History
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    new_id: Callable[[], AnswerId] = AnswerId.new

    def find(self, question: Question) -> RetrievalContext | Answer:
        """The documents that an answer may rest on; without any, the answer that says so, which the history keeps.

        Raises:
            AnswerSystemError: ANSWER_CONTEXT_RETRIEVAL_FAILED.
        """
        try:
            results = self.search.search(SearchQuery(question.text))
            return RetrievalContext(question, relevant_documents(results))
        except AnswerBusinessError as error:
            answer = self._without_documents(question, error.code)
        self.history.keep(answer)
        return answer

    def _without_documents(self, question: Question, code: BusinessCode) -> Answer:
        if code is BusinessCode.INDEX_NOT_AVAILABLE:
            return Answer.without_index(self.new_id(), question, HOW_TO_BUILD, self.now())
        return Answer.without_documents(self.new_id(), question, self.now())

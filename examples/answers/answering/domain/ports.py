"""What the domain needs of the world outside, as protocols."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Protocol

from .answer import Answer
from .question import Question
from .retrieval import RetrievalContext, SearchResult


class Search(Protocol):
    def search(self, question: Question, /) -> Sequence[SearchResult]:
        """The best passages of the index, the best first.

        Raises:
            AnswerBusinessError: ANSWER_INDEX_NOT_AVAILABLE.
            AnswerSystemError: ANSWER_CONTEXT_RETRIEVAL_FAILED.
        """
        ...


class Generator(Protocol):
    def generate(self, context: RetrievalContext, /) -> str:
        """The answer's content, which cites the context's documents as [1], [2], … in their order.

        Raises:
            AnswerSystemError: ANSWER_LLM_API_ERROR or ANSWER_GENERATION_FAILED.
        """
        ...


@dataclass(frozen=True)
class Page:
    answers: tuple[Answer, ...]
    """The newest first."""
    total: int
    """Of all pages."""


class Answers(Protocol):
    """Pages count from 1."""

    def save(self, answer: Answer, /) -> None:
        """With its sources, as a whole or not at all.

        Raises:
            AnswerSystemError: ANSWER_SAVE_FAILED.
        """
        ...

    def recent(self, *, page: int = 1, size: int = 20) -> Page: ...

    def between(self, first: date, last: date, *, page: int = 1, size: int = 20) -> Page:
        """Those of the days from `first` to `last`, both included, in UTC."""
        ...

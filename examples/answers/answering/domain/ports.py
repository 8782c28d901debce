"""What the domain needs of the world outside, as protocols."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from .answer import Answer, Unanswered
from .retrieval import RetrievalContext


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

    def between(self, begin: datetime, end: datetime, *, page: int = 1, size: int = 20) -> Page:
        """Those of `begin` and later, up to but without `end`; both have a time zone."""
        ...


class UnansweredQuestions(Protocol):
    def record(self, unanswered: Unanswered, /) -> None:
        """Raises AnswerSystemError, ANSWER_SAVE_FAILED."""
        ...

    def between(self, begin: datetime, end: datetime, /) -> Sequence[Unanswered]:
        """The newest first."""
        ...

"""What the domain needs of the world outside, as protocols."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from .answer import Answer
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

    def recent(self, limit: int, /) -> Sequence[Answer]:
        """The newest ones, the newest first; at most `limit`."""
        ...

    def unanswered(self) -> Sequence[Answer]:
        """All for which no model was asked, the newest first."""
        ...

"""A question that says something."""

from dataclasses import dataclass
from typing import Self

from .errors import AnswerBusinessError, BusinessCode


@dataclass(frozen=True)
class Question:
    text: str

    def __post_init__(self) -> None:
        """Raises AnswerBusinessError, ANSWER_EMPTY_QUESTION."""
        if not self.text.strip():
            raise AnswerBusinessError(
                BusinessCode.EMPTY_QUESTION, "The question is empty. Write what you want to know."
            )

    @classmethod
    def asked(cls, text: str) -> Self:
        """What a person typed, without blanks around it and without characters that no database stores."""
        storable = text.encode("utf-8", errors="replace").decode("utf-8").replace("\0", "")
        return cls(storable.strip())

    def __str__(self) -> str:
        return self.text

"""The values of the subject; none can be made wrong, and each identifier is a type of its own."""

import re
import string
from dataclasses import dataclass
from enum import StrEnum
from typing import Self
from uuid import uuid4

from .errors import AnswerBusinessError, BusinessCode


@dataclass(frozen=True)
class _Identifier:
    value: str

    def __post_init__(self) -> None:
        if not self.value.strip():
            raise ValueError(f"{type(self).__name__} must not be blank.")

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class DocumentId(_Identifier):
    """The path of the document in its folder, with `/`."""


@dataclass(frozen=True)
class SourceId(_Identifier):
    """The id of an answer and `-source-N`, where the answer cites the source as [N]."""


@dataclass(frozen=True)
class AnswerId(_Identifier):
    @classmethod
    def new(cls) -> Self:
        return cls(f"answer-{uuid4()}")

    def source(self, number: int) -> SourceId:
        return SourceId(f"{self.value}-source-{number}")


class Language(StrEnum):
    """The languages of the documents here."""

    ENGLISH = "en"
    JAPANESE = "ja"


_JAPANESE = re.compile("[\u3040-\u30ff\u4e00-\u9fff]")
"""Kana and kanji."""


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

    @property
    def language(self) -> Language:
        if _JAPANESE.search(self.text):
            return Language.JAPANESE
        return Language.ENGLISH

    def __str__(self) -> str:
        return self.text


class SimilarityScore(float):
    """How well a passage fits a question: 0 for not at all, 1 for the best that is possible."""

    def __new__(cls, value: float) -> Self:
        if not 0 <= value <= 1:
            raise ValueError(f"A score is between 0 and 1, not {value}.")
        return super().__new__(cls, value)


class AnswerContent(str):
    """The words of an answer, which are not blank."""

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        """Raises AnswerBusinessError, ANSWER_EMPTY_CONTENT."""
        if not text.strip():
            raise AnswerBusinessError(BusinessCode.EMPTY_CONTENT, "The model gave an empty answer. Ask again.")
        return super().__new__(cls, text.strip())


class PromptTemplate(str):
    """A system prompt, in which `{documents}` stands for the titles of the documents that were found."""

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        if not text.strip():
            raise ValueError("The system prompt is blank.")
        try:
            names = {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}
        except ValueError as error:
            raise ValueError(f"The system prompt has a brace alone ({error}); write {{{{ for a brace.") from None
        if names - {"documents"}:
            raise ValueError(f"The system prompt names {sorted(names)}; the only placeholder is {{documents}}.")
        return super().__new__(cls, text.strip())

    def filled(self, titles: tuple[str, ...]) -> str:
        return self.format(documents=", ".join(titles))

"""Identifiers, each a type of its own: the id of a document cannot be taken for that of an answer."""

from dataclasses import dataclass
from typing import Self
from uuid import uuid4


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

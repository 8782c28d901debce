"""What every embedding model here can do: texts in, one vector for each out."""

from collections.abc import Sequence
from typing import Protocol

type Vector = Sequence[float]


class Embedding(Protocol):
    @property
    def name(self) -> str:
        """Identifies the model: an index built with one model cannot be searched with another."""

    @property
    def file_part(self) -> str:
        """The same for use in a file name; contains no secret and no special character."""

    @property
    def described(self) -> str:
        """One sentence for the reader of the results."""

    @property
    def least_similarity(self) -> float:
        """Below it, this model considers two texts unrelated."""

    def vectors(self, texts: Sequence[str], /) -> list[Vector]:
        """One vector for each text, in order. Similar texts have similar directions; a text without words has none."""

"""Texts in, one vector each out: what every model of embeddings here can do, and what is said about it."""

from collections.abc import Sequence
from typing import Protocol

type Vector = Sequence[float]


class Embedding(Protocol):
    @property
    def name(self) -> str:
        """Tells this model from every other: an index made with one cannot be asked with another."""

    @property
    def file_part(self) -> str:
        """The same for the name of a file; holds no secret and no sign that a file system minds."""

    @property
    def described(self) -> str:
        """One sentence for whoever reads the results."""

    @property
    def least_similarity(self) -> float:
        """Under it two texts have nothing to do with each other, as this model counts."""

    def vectors(self, texts: Sequence[str], /) -> list[Vector]:
        """In the order of the texts; texts that are alike point in like directions, one that says nothing in none."""

"""A shard: the part of an evaluation that one of several machines runs, such as the second of five."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from devhost.errors import SuiteError

MOST_SHARDS = 10_000


@dataclass(frozen=True)
class Shard:
    """One part of an evaluation."""

    number: int
    """The number of the shard, counted from 1."""
    of: int
    """The number of all shards."""

    @classmethod
    def read(cls, text: str) -> Self:
        """Parses a text such as `2/5`. Raises SuiteError for any other text."""
        found = re.fullmatch(r"(\d{1,5})/(\d{1,5})", text.strip())
        if found is None:
            raise SuiteError(f"--shard {text!r}: write NUMBER/OF, such as 2/5 for the second of five shards")
        shard = cls(int(found[1]), int(found[2]))
        if not 1 <= shard.number <= shard.of <= MOST_SHARDS:
            raise SuiteError(f"--shard {text!r}: the first number must be from 1 to the second one")
        return shard

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @property
    def suffix(self) -> str:
        """The suffix of the shard's file of results."""
        return f".{self.number}-of-{self.of}.results.jsonl"

    def part[T](self, runs: Sequence[T]) -> Sequence[T]:
        """Returns every `of`-th run, so that all shards take about the same time."""
        return runs[self.number - 1 :: self.of]

    def count(self, runs: int) -> int:
        """Returns how many of all runs belong to the shard."""
        return len(range(self.number - 1, runs, self.of))

"""A part of an evaluation's runs, such as the second of five, which one of several machines runs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from devhost.errors import SuiteError

MOST_SHARDS = 10_000


@dataclass(frozen=True)
class Shard:
    number: int
    """From 1."""
    of: int

    @classmethod
    def read(cls, text: str) -> Self:
        """From a text such as `2/5`."""
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
        """One run of each row of `of` runs, so that all shards take about as long."""
        return runs[self.number - 1 :: self.of]

    def count(self, runs: int) -> int:
        return len(range(self.number - 1, runs, self.of))

"""The results that were too long to be shown whole: a run keeps them, and its conversations may read on in them.

In: whole results. Out: ids, and for an id the result as long as it is kept. All of it lives in memory and ends with
the run.
"""

import sys
from dataclasses import dataclass, field

from internal.text.kept_text import Excerpt

MAX_KEPT_BYTES = 16 * 1024 * 1024
"""Of memory, for the texts of one run. A character takes 1, 2 or 4 bytes, as the widest of its text needs."""
MAX_READING_TURNS = 20
"""Turns of one run that only read and are therefore no tool rounds."""


@dataclass
class LongResults:
    """The long results of one run; the oldest make room for new ones."""

    longest: int = MAX_KEPT_BYTES
    reading_turns_left: int = MAX_READING_TURNS
    _kept: dict[str, Excerpt] = field(default_factory=dict, init=False)
    _size: int = field(default=0, init=False)
    _given: int = field(default=0, init=False)

    def keep(self, whole: Excerpt) -> str | None:
        """Keep a result under a new id; None if it is larger than all the memory there is."""
        size = _size_of(whole)
        if size > self.longest:
            return None
        while self._size + size > self.longest:
            oldest = next(iter(self._kept))
            self._size -= _size_of(self._kept.pop(oldest))
        self._given += 1
        self._size += size
        self._kept[name := f"r{self._given}"] = whole
        return name

    def get(self, name: str) -> Excerpt | None:
        """The result, unless newer ones took its room."""
        return self._kept.get(name)


@dataclass
class ReadableResults:
    """The long results of one conversation."""

    of_run: LongResults = field(default_factory=LongResults)
    ids: list[str] = field(default_factory=list, init=False)
    """Of all that were kept, those included that are gone."""

    def keep(self, whole: Excerpt) -> str | None:
        """Keep a result of this conversation; None if it is too large to be kept."""
        name = self.of_run.keep(whole)
        self.ids += [name] if name else []
        return name

    def get(self, name: str) -> Excerpt | None:
        """A result of this conversation; None if it is gone, or another conversation's."""
        return self.of_run.get(name) if name in self.ids else None


def _size_of(whole: Excerpt) -> int:
    return sys.getsizeof(whole.text)

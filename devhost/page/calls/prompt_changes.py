"""What changed in a prompt since the round before.

In: the messages of two prompts, each a sequence of `Said`. Out: `Part`s in the order of the later prompt, with the
messages that are no longer in it where they were.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from devhost.page.calls.opened import Said

type Change = Literal["same", "new", "shortened", "removed"]


@dataclass(frozen=True)
class Part:
    """Neighbouring messages of which the same is to be said; one message if it was shortened."""

    change: Change
    messages: tuple[Said, ...]
    """As they are now; those that were removed as they were."""
    before: Said | None = None
    """Of a shortened message, what it was."""


@dataclass(frozen=True)
class PromptChanges:
    parts: tuple[Part, ...]

    def count(self, change: Change) -> int:
        """Messages."""
        return sum(len(part.messages) for part in self.parts if part.change == change)

    @property
    def words(self) -> str:
        """Such as "2 new, 1 removed, 12 as in the round before"."""
        names: dict[Change, str] = {"new": "new", "shortened": "shortened", "removed": "removed"}
        counted = [f"{self.count(change)} {word}" for change, word in names.items() if self.count(change)]
        return ", ".join([*counted, f"{self.count('same')} as in the round before"])


def prompt_changes(before: Sequence[Said], now: Sequence[Said]) -> PromptChanges:
    return PromptChanges(tuple(_parts(before, now)))


def _parts(before: Sequence[Said], now: Sequence[Said]) -> Iterator[Part]:
    for kind, old_from, old_to, new_from, new_to in SequenceMatcher(None, before, now, autojunk=False).get_opcodes():
        if kind == "equal":
            yield Part("same", tuple(now[new_from:new_to]))
        else:
            yield from _replaced(list(before[old_from:old_to]), now[new_from:new_to])


def _replaced(old: list[Said], new: Sequence[Said]) -> Iterator[Part]:
    """A message is shortened if the next one of its role that disappeared was longer."""
    added: list[Said] = []
    for said in new:
        place = next((place for place, gone in enumerate(old) if gone.role == said.role), None)
        if place is None or len(old[place].text) <= len(said.text):
            added.append(said)
            continue
        yield from _part("new", added)
        yield from _part("removed", old[:place])
        yield Part("shortened", (said,), old[place])
        added, old = [], old[place + 1 :]
    yield from _part("removed", old)
    yield from _part("new", added)


def _part(change: Change, messages: Sequence[Said]) -> Iterator[Part]:
    if messages:
        yield Part(change, tuple(messages))

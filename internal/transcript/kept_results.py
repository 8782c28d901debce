"""Results that a run keeps in memory: the model may read on in them, and refer to them in later calls."""

import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from internal.call import Picture, ToolOutcome
from internal.clock import in_turns
from internal.errors import OurWords
from internal.text.texts import NOT_KEPT
from prompt import template

MAX_KEPT_BYTES = 12 * 1024 * 1024
"""Bytes of memory for the whole results of one run: those that are kept, and those of rounds that are under way
(docs/long-results.md). A character takes 1, 2 or 4 bytes, as its text needs."""
_MAX_PLACES = 2_000
"""Places that are shown at most; all are counted."""
_AROUND = 200
"""Characters that are shown before and after a place."""
_BLOCK = 4_096
"""Characters that are folded at once."""
_WINDOW = 65_536
"""Characters that are searched at once. Python's search takes time in proportion to them, whatever the texts are."""
_WIDTHS = {0x3000: " "} | {wide: chr(wide - 0xFF01 + 0x21) for wide in range(0xFF01, 0xFF5F)}
"""The wide forms of ASCII, by code point, and their ordinary ones."""
_FOLDED = _WIDTHS | {ord("İ"): "i", ord("ı"): "i", ord("ſ"): "s", ord("µ"): "μ"}
"""The same, and letters whose other case is a letter of their own, or two letters."""


@dataclass
class KeptResults:
    """The results of one run that have an id; the oldest make room for new ones."""

    longest: int = MAX_KEPT_BYTES
    given: int = 0
    """The number of the last id. The runs of a conversation never give one twice."""
    _kept: OrderedDict[str, ToolOutcome] = field(default_factory=OrderedDict, init=False)
    """A plain dict takes longer for its first key with each one that was taken out before."""
    _size: int = field(default=0, init=False)
    """Bytes of memory of all texts that are kept."""
    _under_way: int = field(default=0, init=False)
    """Bytes of memory of the results whose rounds have not ended."""

    def keep(self, outcome: ToolOutcome) -> str | None:
        """Keep a result under a new id; None if it is larger than all the memory there is."""
        size = _size_of(outcome)
        if not self._make_room(size):
            return None
        self.given += 1
        name = f"r{self.given}"
        self._kept[name] = replace(outcome, pictures=(), user_text="")
        self._size += size
        return name

    @contextmanager
    def round(self) -> Iterator[Callable[[ToolOutcome], ToolOutcome]]:
        """Until a round has ended, this makes room for each of its results, and cuts one that has none."""
        size = 0

        def taken_in(outcome: ToolOutcome) -> ToolOutcome:
            nonlocal size
            pictures = sum(map(_size_of_picture, outcome.pictures))
            added = _size_of(outcome) + sys.getsizeof(outcome.user_text) + pictures
            if not self._make_room(added):
                left_out = tuple(picture.left_out() for picture in outcome.pictures)
                has_json = bool(outcome.sent_json)
                return replace(
                    outcome, whole=outcome.tool_response, sent_json=(), has_more_json=has_json, pictures=left_out
                )
            size += added
            self._under_way += added
            return outcome

        try:
            yield taken_in
        finally:
            self._under_way -= size

    def _make_room(self, size: int) -> bool:
        """Let the oldest results go until one of this size fits; whether it does."""
        if self._under_way + size > self.longest:
            return False
        while self._size + self._under_way + size > self.longest:
            _, oldest = self._kept.popitem(last=False)
            self._size -= _size_of(oldest)
        return True

    def get(self, name: str) -> ToolOutcome | None:
        """None if it was not kept, or had to make room."""
        return self._kept.get(name)

    def read(self, ids: Sequence[str], limit: int, arguments: Mapping[str, Any]) -> tuple[str, OurWords | None]:
        """Answer a call with valid arguments in at most ``limit`` characters, which are at least 1,000.

        ``ids`` are those of the conversation. With what the model reads, for the log why that is not what it asked for.
        """
        name = str(arguments["id"]).removeprefix("result:")
        wanted = str(arguments.get("find", ""))
        offset = int(arguments.get("offset", 0))
        if name not in ids:
            text = template.UNKNOWN_RESULT.format(id=name[:50], known=", ".join(ids[-20:]))
            return text, OurWords("this conversation has no result of that id")
        if (kept := self.get(name)) is None:
            return template.RESULT_IS_GONE.format(id=name), OurWords("the full text is not kept any more")
        whole = kept.whole
        if wanted:
            return _found(name, whole, wanted, limit), None
        if offset >= len(whole):
            text = template.BEYOND_THE_END.format(id=name, length=len(whole))
            return text, OurWords("the offset is beyond the end")
        return _part(name, whole, offset, limit), None


def _size_of(outcome: ToolOutcome) -> int:
    """Bytes of memory of the texts that are kept of a result."""
    return sum(map(sys.getsizeof, (outcome.whole, *outcome.sent_json)))


def _size_of_picture(picture: Picture) -> int:
    if picture.part is None:
        return 0
    return len(picture.part.base64_data)


def _part(name: str, text: str, offset: int, limit: int) -> str:
    """As much as fits from the offset on, and how to read the rest."""
    facts = {"id": name, "start": offset, "length": len(text)}
    to_the_end = template.READ_TO_THE_END.format(**facts)
    if len(text) - offset + len(to_the_end) <= limit:
        return text[offset:] + to_the_end
    end = offset + limit - len(template.READ_IN_PART.format(**facts, end=len(text)))
    return text[offset:end] + template.READ_IN_PART.format(**facts, end=end)


def _found(name: str, text: str, wanted: str, limit: int) -> str:
    """The first places with their surroundings, as many as fit, and where the next one is."""
    everywhere = places(text, wanted)
    first = list(islice(everywhere, _MAX_PLACES + 1))
    count = len(first) + sum(1 for _ in everywhere)
    header = (template.FOUND if count else template.NOT_FOUND).format(id=name, count=count, length=len(text))
    if NOT_KEPT.search(text):
        header += template.NOT_SEARCHED
    room = limit - len(header) - len(template.FOUND_MORE.format(id=name, count=count, offset=len(text)))
    entries = [header]
    shown = 0
    for entry, in_it in _excerpts(text, first[:_MAX_PLACES]):
        if shown and len(entry) > room:
            break
        entries.append(entry[:room])
        room -= len(entry)
        shown += in_it
    if shown < count:
        entries.append(template.FOUND_MORE.format(id=name, count=count - shown, offset=first[shown][0]))
    return "".join(entries)


def _excerpts(text: str, found: Sequence[tuple[int, int]]) -> Iterator[tuple[str, int]]:
    """Places with their surroundings, and how many places each excerpt shows whole."""
    at = 0
    covered = 0
    while at < len(found):
        first = at
        begin = min(max(found[at][0] - _AROUND, covered), found[at][0])
        covered = min(found[at][1] + _AROUND, len(text))
        while at < len(found) and found[at][1] <= covered:
            at += 1
        yield template.FOUND_AT.format(offset=found[first][0], text=text[begin:covered]), at - first


def places(text: str, wanted: str) -> Iterator[tuple[int, int]]:
    """Where a longer text contains this one, whatever the case and width of letters; places do not overlap."""
    looked_for = _folded(wanted)
    blocks = (text[at : at + _BLOCK] for at in in_turns(range(0, len(text), _BLOCK)))
    searched = "".join(map(_folded, blocks))
    end = 0
    for start in in_turns(range(0, len(text), _WINDOW)):
        last = start + _WINDOW + len(looked_for) - 1
        found = searched.find(looked_for, max(start, end), last)
        while found >= 0:
            end = found + len(looked_for)
            yield found, end
            found = searched.find(looked_for, end, last)


def _folded(text: str) -> str:
    """A text of the same length, equal for texts that differ only in the case and width of their letters."""
    if text.isascii():
        return text.lower()
    return text.translate(_FOLDED).lower().replace("ς", "σ")

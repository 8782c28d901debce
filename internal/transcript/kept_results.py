"""Results that a run keeps in memory. The model can read more of them, and refer to them in later calls."""

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
"""Maximum bytes of memory for the whole results of one run: kept results, and results of unfinished rounds
(docs/long-results.md). A character takes 1, 2 or 4 bytes, depending on its text."""
_MAX_PLACES = 2_000
"""Maximum number of matches that are shown. All are counted."""
_AROUND = 200
"""Number of characters that are shown before and after a match."""
_BLOCK = 4_096
"""Number of characters that are folded at once."""
_WINDOW = 65_536
"""Number of characters that are searched at once. Python's search takes linear time for all texts."""
_WIDTHS = {0x3000: " "} | {wide: chr(wide - 0xFF01 + 0x21) for wide in range(0xFF01, 0xFF5F)}
"""The ordinary forms of ASCII characters by the code points of their wide forms."""
_FOLDED = _WIDTHS | {ord("İ"): "i", ord("ı"): "i", ord("ſ"): "s", ord("µ"): "μ"}
"""The wide forms, plus variants of letters that ``str.lower`` leaves unchanged or turns into two characters."""


@dataclass
class KeptResults:
    """The results of one run that have an id. The oldest results are dropped to make room for new results."""

    longest: int = MAX_KEPT_BYTES
    given: int = 0
    """The number of the last id. The runs of a conversation never reuse an id."""
    _kept: OrderedDict[str, ToolOutcome] = field(default_factory=OrderedDict, init=False)
    """An ``OrderedDict``, because finding the first key of a plain dict takes longer after each removal."""
    _size: int = field(default=0, init=False)
    """Bytes of memory of all texts that are kept."""
    _under_way: int = field(default=0, init=False)
    """Bytes of memory of the results of unfinished rounds."""

    def keep(self, outcome: ToolOutcome) -> str | None:
        """Keep a result and return its new id; None if it is larger than the whole memory."""
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
        """Reserve room for the results of a round until it ends. The yielded function cuts results to fit."""
        size = 0

        def cut_to_memory(outcome: ToolOutcome) -> ToolOutcome:
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
            yield cut_to_memory
        finally:
            self._under_way -= size

    def _make_room(self, size: int) -> bool:
        """Drop the oldest results until a result of this size fits, and return whether it fits."""
        if self._under_way + size > self.longest:
            return False
        while self._size + self._under_way + size > self.longest:
            _, oldest = self._kept.popitem(last=False)
            self._size -= _size_of(oldest)
        return True

    def get(self, name: str) -> ToolOutcome | None:
        """Return the result with this id; None if it was not kept, or was dropped."""
        return self._kept.get(name)

    def read(self, ids: Sequence[str], limit: int, arguments: Mapping[str, Any]) -> tuple[str, OurWords | None]:
        """Answer a call with valid arguments in at most ``limit`` characters (1,000 or more).

        ``ids`` are the ids of the conversation. Returns the text for the model and, if the call failed, the reason for
        the log.
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
    """Return the bytes of memory of a result's kept texts."""
    return sum(map(sys.getsizeof, (outcome.whole, *outcome.sent_json)))


def _size_of_picture(picture: Picture) -> int:
    if picture.part is None:
        return 0
    return len(picture.part.base64_data)


def _part(name: str, text: str, offset: int, limit: int) -> str:
    """Return as much of a result from the offset on as fits, and a note on how to read the rest."""
    facts = {"id": name, "start": offset, "length": len(text)}
    to_the_end = template.READ_TO_THE_END.format(**facts)
    if len(text) - offset + len(to_the_end) <= limit:
        return text[offset:] + to_the_end
    end = offset + limit - len(template.READ_IN_PART.format(**facts, end=len(text)))
    return text[offset:end] + template.READ_IN_PART.format(**facts, end=end)


def _found(name: str, text: str, wanted: str, limit: int) -> str:
    """Return as many matches with their surroundings as fit, and the position of the next match."""
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
    """Yield excerpts around matches, each with the number of matches that it shows completely."""
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
    """Yield the start and end of each match in a text, ignoring case and width of letters. Matches do not overlap."""
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
    """Return a text of the same length, which is equal for texts that differ only in case and width of letters."""
    if text.isascii():
        return text.lower()
    return text.translate(_FOLDED).lower().replace("ς", "σ")

"""Results that were too long to be shown whole: a run keeps them in memory, and the model may read on in them."""

import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice
from typing import Any

from internal.clock import in_turns
from internal.errors import OurWords
from internal.text.texts import Excerpt
from prompt import template

MAX_KEPT_BYTES = 16 * 1024 * 1024
"""Of memory, for the texts of one run. A character takes 1, 2 or 4 bytes, as the widest of its text needs."""
_MAX_PLACES = 2_000
"""Places that are shown at most; all are counted."""
_AROUND = (60, 400)
"""Characters that are shown before and after a place: at least, and at most."""
_BLOCK = 4_096
"""Characters that are searched before other sessions run."""


@dataclass
class LongResults:
    """The long results of one run; the oldest make room for new ones."""

    longest: int = MAX_KEPT_BYTES
    _kept: dict[str, Excerpt] = field(default_factory=dict, init=False)
    _given: int = field(default=0, init=False)

    def keep(self, whole: Excerpt) -> str | None:
        """Keep a result under a new id; None if it is larger than all the memory there is."""
        if sys.getsizeof(whole.text) > self.longest:
            return None
        self._given += 1
        self._kept[name := f"r{self._given}"] = whole
        while sum(sys.getsizeof(each.text) for each in self._kept.values()) > self.longest:
            del self._kept[next(iter(self._kept))]
        return name

    def read(self, ids: Sequence[str], limit: int, arguments: Mapping[str, Any]) -> tuple[str, OurWords | None]:
        """Answer a call with valid arguments in at most ``limit`` characters, which are at least 1,000.

        ``ids`` are those of the conversation. With what the model reads, for the log why that is not what it asked for.
        """
        name, wanted, offset = str(arguments["id"]), str(arguments.get("find", "")), int(arguments.get("offset", 0))
        if name not in ids:
            text = template.UNKNOWN_RESULT.format(id=name[:50], known=", ".join(ids[-20:]))
            return text, OurWords("this conversation has no long result of that id")
        if (whole := self._kept.get(name)) is None:
            return template.RESULT_IS_GONE.format(id=name), OurWords("the full text is not kept any more")
        if wanted:
            return _found(name, whole, wanted, limit), None
        if offset >= len(whole.text):
            text = template.BEYOND_THE_END.format(id=name, length=len(whole.text))
            return text, OurWords("the offset is beyond the end")
        return _part(name, whole.text, offset, limit), None


def _part(name: str, text: str, offset: int, limit: int) -> str:
    """As much as fits from the offset on, and how to read the rest."""
    facts = {"id": name, "start": offset, "length": len(text)}
    to_the_end = template.READ_TO_THE_END.format(**facts)
    if len(text) - offset + len(to_the_end) <= limit:
        return text[offset:] + to_the_end
    end = offset + limit - len(template.READ_IN_PART.format(**facts, end=len(text)))
    return text[offset:end] + template.READ_IN_PART.format(**facts, end=end)


def _found(name: str, whole: Excerpt, wanted: str, limit: int) -> str:
    """The first places with their surroundings, as many as fit, and where the next one is."""
    everywhere = places(whole.text, wanted)
    first = list(islice(everywhere, _MAX_PLACES + 1))
    count = len(first) + sum(1 for _ in everywhere)
    header = (template.FOUND if count else template.NOT_FOUND).format(id=name, count=count, length=len(whole.text))
    header += template.NOT_SEARCHED if whole.missing else ""
    room = limit - len(header) - len(template.FOUND_MORE.format(id=name, count=count, offset=len(whole.text)))
    least, most = _AROUND
    around = max(least, min(most, room // max(1, len(first)) // 2 - least))
    entries, shown = [header], 0
    for entry, in_it in _excerpts(whole.text, first[:_MAX_PLACES], around):
        if shown and len(entry) > room:
            break
        entries.append(entry[:room])
        room -= len(entry)
        shown += in_it
    if shown < count:
        entries.append(template.FOUND_MORE.format(id=name, count=count - shown, offset=first[shown][0]))
    return "".join(entries)


def _excerpts(text: str, found: Sequence[tuple[int, int]], around: int) -> Iterator[tuple[str, int]]:
    """Places with their surroundings, and how many places each excerpt shows whole."""
    at, covered = 0, 0
    while at < len(found):
        first = at
        begin = min(max(found[at][0] - around, covered), found[at][0])
        covered = min(found[at][1] + around, len(text))
        while at < len(found) and found[at][1] <= covered:
            at += 1
        yield template.FOUND_AT.format(offset=found[first][0], text=text[begin:covered]), at - first


class _Spelling(dict[int, str]):
    """One spelling for letters that count as equal, by code point: é for É, and e with an accent for both."""

    def __missing__(self, point: int) -> str:
        folded = unicodedata.normalize("NFKD", chr(point)).casefold()
        self[point] = unicodedata.normalize("NFKD", folded)
        return self[point]


def places(text: str, wanted: str) -> Iterator[tuple[int, int]]:
    """Where a text stands in a longer one, whatever the case and width of its letters; no place overlaps another."""
    spelling, done = _Spelling(), 0
    looked_for = wanted.translate(spelling)
    for begin in in_turns(range(0, len(text) if looked_for else 0, _BLOCK)):
        block = text[begin : begin + _BLOCK + len(looked_for)]
        spelled = block.translate(spelling)
        at = spelled.find(looked_for)
        letters = accumulate((len(spelling[ord(letter)]) for letter in block), initial=0) if at >= 0 else ()
        letter_at = {position: letter for letter, position in enumerate(letters)}
        while at >= 0:
            after = at + len(looked_for)
            start, end = letter_at.get(at), letter_at.get(after)
            has_mark = unicodedata.combining(spelled[after : after + 1] or " ")
            if start is not None and end is not None and not has_mark and done - begin <= start < _BLOCK:
                done = begin + end
                yield begin + start, done
            at = spelled.find(looked_for, at + 1)

"""Results that were too long to be shown whole: a run keeps them, and the model may read on in them."""

import re
import sys
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice
from typing import Any, NamedTuple

from internal.clock import in_turns
from internal.errors import OurWords
from internal.text.texts import Excerpt
from prompt import template

# Where a text stands in a longer one, whatever the letter case and width of its characters.
#
# It takes time linear in the text.

_BLOCK = 4_096
"""Characters that are compared before other sessions run; each may be a place."""
_MARK = "[\u0300-\u036f\u3099\u309a\uff9e\uff9f]"
"""What changes the letter before it: accents, and the voiced sound marks of kana."""
_MAX_MARKS = 8
_LETTER = re.compile(rf"[\s\S]{_MARK}{{0,{_MAX_MARKS}}}+")


class Place(NamedTuple):
    """A part of a text."""

    start: int
    end: int


class _Spelling(dict[str, str]):
    """One spelling for letters that count as equal: É for é and for e with an accent, ガ for ｶﾞ, fi for ﬁ."""

    def __missing__(self, letter: str) -> str:
        normal = unicodedata.normalize("NFKC", letter).casefold()
        self[letter] = unicodedata.normalize("NFKC", normal)
        return self[letter]


@dataclass(frozen=True)
class _Block:
    """A part of a text in one spelling; where a letter stands in it, and where that letter stands in the text."""

    spelled: str
    in_spelled: Sequence[int]
    in_text: Sequence[int]

    @classmethod
    def of(cls, text: str, spelling: _Spelling) -> "_Block":
        """In most texts only the letter case changes: each character is a letter, which takes a tenth of the time."""
        folded = text.casefold()
        if len(folded) == len(text) and unicodedata.is_normalized("NFKC", folded):
            same = range(len(text) + 1)
            return cls(folded, same, same)
        letters = _LETTER.findall(text)
        spelled = [spelling[letter] for letter in letters]
        return cls(
            "".join(spelled),
            list(accumulate(map(len, spelled), initial=0)),
            list(accumulate(map(len, letters), initial=0)),
        )

    def places(self, wanted: str, begin: int) -> list[tuple[int, int]]:
        """Where the wanted text stands, from this position in the text on; no place overlaps another."""
        found, at = list[int](), self.in_spelled[bisect_left(self.in_text, begin)]
        while (at := self.spelled.find(wanted, at)) >= 0:
            found.append(at)
            at += len(wanted)
        if self.in_text is self.in_spelled:
            return [(start, start + len(wanted)) for start in found]
        return [(self._letter(start), self._letter(start + len(wanted) - 1, after=True)) for start in found]

    def _letter(self, at: int, *, after: bool = False) -> int:
        """Where the letter at this position in the spelling begins in the text, or the one after it."""
        return self.in_text[bisect_right(self.in_spelled, at) - (not after)]


def places(text: str, wanted: str) -> Iterator[Place]:
    """All places from the beginning on that do not overlap."""
    spelling = _Spelling()
    looked_for = _Block.of(wanted, spelling).spelled
    if not looked_for:
        return
    overlap = len(looked_for) * (_MAX_MARKS + 1)
    done = 0
    for begin in in_turns(range(0, len(text), _BLOCK)):
        block = _Block.of(text[begin : begin + _BLOCK + overlap], spelling)
        for start, end in block.places(looked_for, max(done - begin, 0)):
            if start >= _BLOCK:  # in the next block, which has all of its marks
                break
            done = begin + end
            yield Place(begin + start, done)


# The results that were too long to be shown whole: a run keeps them, and its conversations may read on in them.
#
# All of it lives in memory and ends with the run.

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


# More of a result that was too long to be shown whole: the part from an offset on, or the places where a text stands.
#
# What was never kept of a result is a line in its text, at its place.

_MAX_PLACES = 2_000
"""Places that are shown at most; all are counted."""
_AROUND = (60, 400)
"""Characters that are shown before and after a place: at least, and at most."""
_MAX_NAMED = 20
"""Ids that are named to a model that asked for another."""
_MAX_QUOTE_LENGTH = 50


@dataclass(frozen=True)
class Reply:
    """What the model reads, and for the log why that is not what it asked for."""

    text: str
    error: OurWords | None = None


def read_result(results: ReadableResults, arguments: Mapping[str, Any], limit: int) -> Reply:
    """Answer a call with valid arguments in at most ``limit`` characters, which are at least 1,000."""
    name, wanted, offset = str(arguments["id"]), str(arguments.get("find", "")), int(arguments.get("offset", 0))
    whole = results.get(name)
    if whole is None and name in results.ids:
        return Reply(template.RESULT_IS_GONE.format(id=name), OurWords("the full text is not kept any more"))
    if whole is None:
        known = ", ".join(results.ids[-_MAX_NAMED:])
        text = template.UNKNOWN_RESULT.format(id=name[:_MAX_QUOTE_LENGTH], known=known)
        return Reply(text, OurWords("this conversation has no long result of that id"))
    if wanted:
        return Reply(_found(name, whole, wanted, limit))
    if offset >= len(whole.text):
        text = template.BEYOND_THE_END.format(id=name, length=len(whole.text))
        return Reply(text, OurWords("the offset is beyond the end"))
    return Reply(_part(name, whole.text, offset, limit))


def _part(name: str, text: str, offset: int, limit: int) -> str:
    """As much as fits from the offset on, and where it goes on."""
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
    if whole.missing:
        header += template.NOT_SEARCHED
    more = template.FOUND_MORE.format(id=name, count=count, offset=len(whole.text))
    entries, shown = _entries(whole.text, first[:_MAX_PLACES], limit - len(header) - len(more))
    if shown < count:
        entries.append(template.FOUND_MORE.format(id=name, count=count - shown, offset=first[shown].start))
    return "".join([header, *entries])


def _entries(text: str, found: Sequence[Place], room: int) -> tuple[list[str], int]:
    """Places with their surroundings, and how many places are in them."""
    least, most = _AROUND
    around = max(least, min(most, room // max(1, len(found)) // 2 - least))
    entries, shown = list[str](), 0
    for entry, in_it in _excerpts(text, found, around):
        cut = entry[:room] if not entries else entry
        if len(cut) > room:
            break
        entries.append(cut)
        room -= len(cut)
        shown += in_it
    return entries, shown


def _excerpts(text: str, found: Sequence[Place], around: int) -> Iterator[tuple[str, int]]:
    """Each place with its surroundings; a place that stands in the excerpt before needs none of its own."""
    at, covered = 0, 0
    while at < len(found):
        first = at
        begin = min(max(found[at].start - around, covered), found[at].start)
        covered = min(found[at].end + around, len(text))
        while at < len(found) and found[at].end <= covered:
            at += 1
        yield template.FOUND_AT.format(offset=found[first].start, text=text[begin:covered]), at - first

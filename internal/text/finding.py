"""Where a text stands in a longer one, whatever the letter case and width of its characters.

In: a text of any length and what to look for. Out: the places, as positions in the text as it is. It takes time linear
in the text.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from internal.text.fairness import in_turns

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

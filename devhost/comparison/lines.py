"""What is different between two texts, line by line and within lines, as `difflib` finds it.

In: the lines of two texts. Out: rows for two columns.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Literal

type Kind = Literal["same", "changed", "left", "right", "gap"]
"""`left` and `right`: only there. `gap`: equal lines that are left out."""
type Matcher = SequenceMatcher[str]
CONTEXT = 1
"""Equal lines around each difference."""
MOST_WORDS, MOST_LINES = 1_000, 2_000
"""Above the first, no words of a line are compared; above the second, frequent lines are not matched one by one. The
time of a comparison grows with the square of both.
"""
ALIKE = 0.4
"""From this ratio on, two lines are shown as one that was changed."""
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")


@dataclass(frozen=True)
class Piece:
    text: str
    is_other: bool
    """Not in the other column."""


@dataclass(frozen=True)
class Row:
    kind: Kind
    left: tuple[Piece, ...] = ()
    right: tuple[Piece, ...] = ()

    def as_json(self) -> dict[str, str | None]:
        left, right = ("".join(piece.text for piece in side) for side in (self.left, self.right))
        return {
            "kind": self.kind,
            "left": None if self.kind == "right" else left,
            "right": None if self.kind == "left" else right,
        }


def is_part(side: Sequence[Piece]) -> bool:
    """Whether a part of the line differs, and not all of it."""
    return len({piece.is_other for piece in side}) > 1


def rows(left: Sequence[str], right: Sequence[str], *, whole: bool = False) -> list[Row]:
    """Empty without a difference. `whole`: with all equal lines, also then."""
    matcher = SequenceMatcher(None, left, right, autojunk=max(len(left), len(right)) > MOST_LINES)
    if whole:
        return [row for code in matcher.get_opcodes() for row in _rows(code, left, right)]
    found: list[Row] = []
    groups = matcher.get_grouped_opcodes(CONTEXT)
    for group in groups if list(left) != list(right) else ():
        if found:
            found.append(Row("gap"))
        found += [row for code in group for row in _rows(code, left, right)]
    return found


def _rows(code: tuple[str, int, int, int, int], left: Sequence[str], right: Sequence[str]) -> Iterator[Row]:
    tag, left_from, left_to, right_from, right_to = code
    ours, others = left[left_from:left_to], right[right_from:right_to]
    if tag == "equal":
        for line in ours:
            yield Row("same", (Piece(line, is_other=False),), (Piece(line, is_other=False),))
        return
    for mine, its in zip_longest(ours, others):
        yield from _pair(mine, its)


def _pair(left: str | None, right: str | None) -> Iterator[Row]:
    if left is None or right is None:
        if left is not None:
            yield Row("left", (Piece(left, is_other=True),))
        if right is not None:
            yield Row("right", right=(Piece(right, is_other=True),))
        return
    words = _WORDS.findall(left), _WORDS.findall(right)
    matcher = SequenceMatcher(None, *words, autojunk=False)
    if max(map(len, words)) > MOST_WORDS or matcher.ratio() < ALIKE:
        yield Row("changed", (Piece(left, is_other=True),), (Piece(right, is_other=True),))
        return
    codes = matcher.get_opcodes()
    yield Row(
        "changed",
        tuple(Piece("".join(words[0][a:b]), tag != "equal") for tag, a, b, _, _ in codes if b > a),
        tuple(Piece("".join(words[1][a:b]), tag != "equal") for tag, _, _, a, b in codes if b > a),
    )

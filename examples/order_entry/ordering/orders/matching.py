"""How alike two names are, by RapidFuzz over folded text; scores are from 0 to 100.

In: texts as people write them. Out: candidates, the best first.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from rapidfuzz import fuzz

from .folding import folded

LEAST = 65.0
"""Below it, two names have little more in common than letters. Tried with the catalogue of this example."""
_OF_A_PART = 0.95
"""What is the same as a whole comes before what only contains it."""


@dataclass(frozen=True)
class Candidate[T]:
    value: T
    score: float


def likeness(query: str, names: Iterable[str]) -> float:
    """Of the name that is most like the query; one that is the same but for its spelling has 100."""
    wanted = folded(query)
    return max((_alike(wanted, folded(name)) for name in names), default=0.0)


def candidates[T](query: str, values: Iterable[tuple[T, Sequence[str]]], limit: int) -> list[Candidate[T]]:
    """`values`: each with its names. Equal scores stay in the given order."""
    found = [Candidate(value, likeness(query, names)) for value, names in values]
    likely = [candidate for candidate in found if candidate.score >= LEAST]
    return sorted(likely, key=lambda candidate: -candidate.score)[:limit]


def _alike(wanted: str, name: str) -> float:
    """Word by word, and as a whole: Japanese is written without blanks, and so are codes."""
    if not wanted or not name:
        return 0.0
    whole, other = wanted.replace(" ", ""), name.replace(" ", "")
    by_words = [max(_part_of(word, each) for each in name.split()) for word in wanted.split()]
    weights = [len(word) for word in wanted.split()]
    return max(fuzz.ratio(whole, other), _part_of(whole, other), fmean(by_words, weights) * _OF_A_PART)


def _part_of(wanted: str, name: str) -> float:
    """A name is usually shortened, not lengthened; a single letter is in nearly every name."""
    if len(wanted) == 1 or len(wanted) > len(name):
        return fuzz.ratio(wanted, name)
    return max(fuzz.ratio(wanted, name), fuzz.partial_ratio(wanted, name) * _OF_A_PART)

"""How well passages fit a question: BM25, divided by the highest score that is possible for the question.

So a score is between 0 and 1, and says which part of the question's rare terms a passage holds. A term that no passage
holds counts too: a question about another matter has a low score everywhere. No library does this over an index in a
database: those for Python keep all texts in memory.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .terms import weight

_SATURATION = 0.4
"""k1 of BM25: a term that is there once counts for 1 / (1 + k1) of what it can."""
_LENGTH = 0.5
"""b of BM25: how far a long passage counts less."""


@dataclass(frozen=True)
class Posting:
    """A term in a passage."""

    term: str
    passage: str
    count: int
    length: int
    """Of the passage, in terms."""


def scores(
    question: Mapping[str, int], postings: Iterable[Posting], *, passages: int, average_length: float
) -> dict[str, float]:
    """By passage. `postings`: all of the question's terms; the sums go by their order, so give them sorted."""
    by_term: dict[str, list[Posting]] = defaultdict(list)
    for posting in postings:
        by_term[posting.term].append(posting)
    weights = {term: weight(term) * _rarity(len(by_term[term]), passages) for term in sorted(question)}
    whole = sum(weights.values())
    found: dict[str, float] = defaultdict(float)
    for term, share in weights.items():
        for posting in by_term[term]:
            scale = _SATURATION * (1 - _LENGTH + _LENGTH * posting.length / average_length)
            found[posting.passage] += share / whole * posting.count / (posting.count + scale)
    return {passage: min(score, 1.0) for passage, score in found.items()}


def _rarity(holders: int, passages: int) -> float:
    """BM25's inverse document frequency; above 0 also for a term that is everywhere."""
    return math.log(1 + (passages - holders + 0.5) / (holders + 0.5))

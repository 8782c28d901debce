"""Reciprocal rank fusion: several rankings of the same things → one score for each thing."""

from collections.abc import Hashable, Sequence

SMOOTHING = 60
"""k of the formula: how little the first ranks differ."""


def fused[T: Hashable](*rankings: Sequence[T]) -> dict[T, float]:
    """The best first; 1 for what is first in every ranking, about 0.5 for what is first in one of two."""
    whole = len(rankings) / (SMOOTHING + 1)
    found: dict[T, float] = {}
    for ranking in rankings:
        for rank, each in enumerate(ranking, start=1):
            found[each] = found.get(each, 0) + 1 / (SMOOTHING + rank)
    return {each: min(found[each] / whole, 1.0) for each in sorted(found, key=lambda each: -found[each])}

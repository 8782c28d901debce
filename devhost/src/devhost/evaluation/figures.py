"""Means and shares with standard errors and 95 % intervals, and tests whether two of them differ beyond chance.

A share has Wilson's score interval, and a mean has Student's t interval. Two shares are compared with Newcombe's
interval of their difference, which is computed from Wilson's intervals. The shares may be independent or come from the
same cases before and after.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist, fmean, stdev
from typing import Literal, Self

CONFIDENCE = 0.95
Z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)

type Verdict = Literal["more", "less", "same"]
"""Whether a value became more or less. `same` means that the difference is not beyond chance."""


@dataclass(frozen=True)
class Interval:
    """A confidence interval."""

    low: float
    high: float

    @property
    def verdict(self) -> Verdict:
        """The verdict if the interval is that of a difference."""
        if self.low > 0:
            return "more"
        if self.high < 0:
            return "less"
        return "same"


# Shares of runs or cases that passed.


@dataclass(frozen=True)
class Share:
    """The share of runs or cases that passed."""

    passed: int
    count: int
    """The number of all runs or cases, which is never 0."""

    @property
    def value(self) -> float:
        return self.passed / self.count

    @property
    def error(self) -> float:
        """The standard error of the share."""
        return sqrt(self.value * (1 - self.value) / self.count)

    @property
    def interval(self) -> Interval:
        """Wilson's score interval (Wilson 1927)."""
        n = self.count
        p = self.value
        middle = (p + Z**2 / (2 * n)) / (1 + Z**2 / n)
        half = Z / (1 + Z**2 / n) * sqrt(p * (1 - p) / n + Z**2 / (4 * n**2))
        return Interval(max(0.0, middle - half), min(1.0, middle + half))


def share_difference(before: Share, after: Share, correlation: float = 0.0) -> Interval:
    """Returns Newcombe's interval of `after - before` (Newcombe 1998).

    `correlation` is the result of `paired_correlation`, or 0 for independent shares.
    """
    was = before.interval
    now = after.interval
    difference = after.value - before.value
    down = _distance(after.value - now.low, was.high - before.value, correlation)
    up = _distance(now.high - after.value, before.value - was.low, correlation)
    return Interval(difference - down, difference + up)


def _distance(one: float, other: float, correlation: float) -> float:
    return sqrt(max(0.0, one**2 - 2 * correlation * one * other + other**2))


def paired_correlation(pairs: Sequence[tuple[bool, bool]]) -> float:
    """Returns the correlation phi of the same cases before and after, with Newcombe's continuity correction.

    The result is 0 if one side is constant.
    """
    both = pairs.count((True, True))
    neither = pairs.count((False, False))
    lost = pairs.count((True, False))
    won = pairs.count((False, True))
    margins = (both + lost) * (won + neither) * (both + won) * (lost + neither)
    if not margins:
        return 0.0
    product = float(both * neither - lost * won)
    if product > 0:
        product = max(product - len(pairs) / 2, 0.0)
    return product / sqrt(margins)


# Means of tokens, seconds, prices and scores.

T_VALUES: Mapping[int, float] = {
    1: 12.706,
    2: 4.303,
    3: 3.182,
    4: 2.776,
    5: 2.571,
    6: 2.447,
    7: 2.365,
    8: 2.306,
    9: 2.262,
    10: 2.228,
    11: 2.201,
    12: 2.179,
    13: 2.160,
    14: 2.145,
    15: 2.131,
    16: 2.120,
    17: 2.110,
    18: 2.101,
    19: 2.093,
    20: 2.086,
    21: 2.080,
    22: 2.074,
    23: 2.069,
    24: 2.064,
    25: 2.060,
    26: 2.056,
    27: 2.052,
    28: 2.048,
    29: 2.045,
    30: 2.042,
    40: 2.021,
    60: 2.000,
    120: 1.980,
}
"""The 97.5th percentiles of Student's t by degrees of freedom. Between two rows, the larger percentile is used."""
_ROWS = sorted(T_VALUES)


def t_value(degrees: int) -> float:
    """Returns the percentile of Student's t for these degrees of freedom."""
    return T_VALUES[_ROWS[bisect_right(_ROWS, degrees) - 1]]


@dataclass(frozen=True)
class Mean:
    """The mean of several values."""

    value: float
    count: int
    error: float | None
    """The standard error, or `None` for a single value."""

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        """Computes the mean of one or more values."""
        error = None
        if len(values) > 1:
            error = stdev(values) / sqrt(len(values))
        return cls(fmean(values), len(values), error)

    @property
    def interval(self) -> Interval | None:
        """Student's t interval, or `None` for a single value."""
        if self.error is None:
            return None
        half = t_value(self.count - 1) * self.error
        return Interval(self.value - half, self.value + half)


def mean_difference(pairs: Sequence[tuple[float, float]]) -> Verdict:
    """Compares the same cases before and after by the t interval of their differences. Returns "same" for one case."""
    interval = None
    if pairs:
        interval = Mean.of([after - before for before, after in pairs]).interval
    if interval is None:
        return "same"
    return interval.verdict

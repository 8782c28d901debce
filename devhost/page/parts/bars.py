"""Positions on the time axis, in percent, and durations as text."""

from collections.abc import Iterator
from dataclasses import dataclass

MOST_TICKS = 8
STEPS = (1, 2, 5, 10)
SECOND, MINUTE = 1000, 60
"""In milliseconds, and in seconds."""


@dataclass(frozen=True)
class Axis:
    began: float
    ended: float

    @property
    def length(self) -> float:
        return max(self.ended - self.began, 1e-6)

    def place(self, at: float) -> float:
        return round(100 * min(max((at - self.began) / self.length, 0.0), 1.0), 4)

    def bar(self, began: float, ended: float) -> str:
        """The style of a bar: its seconds, so that it stays true when the axis grows."""
        return f"--from:{self._seconds(began)};--size:{self._seconds(ended) - self._seconds(began):.6g}"

    @property
    def scale(self) -> str:
        """The style of what holds the bars."""
        return f"--length:{self.length:.6g};--step:{self.step_percent:.4f}%"

    def _seconds(self, at: float) -> float:
        """Since the axis began, on it."""
        return round(min(max(at - self.began, 0.0), self.length), 6)

    @property
    def step(self) -> float:
        """Seconds from tick to tick: the smallest of 1, 2, 5, 10, … that does not make too many of them."""
        power = 1e-6
        while True:
            for step in STEPS:
                if self.length / (step * power) <= MOST_TICKS:
                    return step * power
            power *= 10

    @property
    def step_percent(self) -> float:
        return 100 * self.step / self.length

    def ticks(self) -> Iterator[tuple[float, str]]:
        for number in range(int(self.length / self.step + 1e-9) + 1):
            at = number * self.step
            yield self.place(self.began + at), "0" if number == 0 else written(at)


def written(seconds: float) -> str:
    """As few digits as needed: 6 ms, 450 ms, 1.84 s, 12.3 s, 2 min 5 s."""
    milliseconds = round(seconds * 1000)
    if milliseconds < 1:
        return "<1 ms" if seconds > 0 else "0 ms"
    if milliseconds < SECOND:
        return f"{milliseconds} ms"
    if round(seconds, 1) < MINUTE:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), MINUTE)
    return f"{minutes} min {rest} s" if rest else f"{minutes} min"

"""The history of the evaluations of a file of cases, as charts and as a table."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from devhost.errors import SuiteError
from devhost.evaluation.figures import Interval
from devhost.evaluation.table import ColumnTotal, Evaluation, read_evaluation
from devhost.text import real_path

WIDTH = 480
HEIGHT = 190
LEFT = 56
"""The width of the space on the left of a chart for the numbers of the axis."""
RIGHT = 12
TOP = 12
BOTTOM = 26
WHOLE_NUMBERS = 100
"""The highest value from which the numbers of an axis have no decimals."""
MOST_COLUMNS = 6
"""How many columns a chart shows, each with its own dash and mark. The table shows all columns."""


@dataclass(frozen=True)
class EvaluationPoint:
    """One evaluation of the history."""

    label: str
    """The time when the evaluation began, as a person reads it."""
    totals: Mapping[str, ColumnTotal]
    """The totals of the evaluation by column."""


@dataclass(frozen=True)
class Mark:
    """A value in a chart, with the ends of its interval, in SVG units."""

    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True)
class ColumnLine:
    """The line of one column in a chart."""

    column: str
    marks: tuple[Mark, ...]
    points: str
    """The points of an SVG polyline."""
    words: str
    """The values as text for screen readers."""


@dataclass(frozen=True)
class Chart:
    """The chart of one figure over all evaluations."""

    title: str
    lines: tuple[ColumnLine, ...]
    ticks: tuple[tuple[float, str], ...]
    """The vertical positions of the axis labels, and the labels."""
    ends: tuple[str, str]
    """The times when the first and the last evaluation began."""
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT


@dataclass(frozen=True)
class _Value:
    value: float
    interval: Interval | None
    said: str


@dataclass(frozen=True)
class EvaluationHistory:
    """Several evaluations of the same file of cases."""

    points: tuple[EvaluationPoint, ...]
    """The evaluations, oldest first."""
    left_out: tuple[str, ...] = ()
    """A sentence for each file in the folder that is not shown."""

    @cached_property
    def columns(self) -> Sequence[str]:
        return tuple(dict.fromkeys(column for point in self.points for column in point.totals))

    @property
    def charts(self) -> Iterator[Chart]:
        """A chart of the passed cases, then one for each figure that has a value other than zero."""
        yield self._chart("passed cases", "passed")
        named = [name for point in self.points for total in point.totals.values() for name in total.figures]
        for name in dict.fromkeys(named):
            if any(
                total.figures[name].value
                for each in self.points
                for total in each.totals.values()
                if name in total.figures
            ):
                yield self._chart(f"{name}, the mean of a run", name)

    def _chart(self, title: str, name: str) -> Chart:
        found = {
            column: [_value(point.totals.get(column), name) for point in self.points]
            for column in self.columns[:MOST_COLUMNS]
        }
        highest = 1.0
        if name != "passed":
            values = [each for row in found.values() for each in row if each is not None]
            highest = max((each.interval or Interval(0, each.value)).high for each in values) or 1.0
        lines = [_line(column, row, self.points, highest) for column, row in found.items() if any(row)]
        ticks = []
        for part in (0, 0.5, 1):
            words = f"{part * highest:,.3g}"
            if highest >= WHOLE_NUMBERS:
                words = f"{part * highest:,.0f}"
            if name == "passed":
                words = f"{part:.0%}"
            ticks.append((_height(part * highest, highest), words))
        ends = (self.points[0].label, self.points[-1].label)
        return Chart(title, tuple(lines), tuple(ticks), ends)


def no_history() -> EvaluationHistory:
    return EvaluationHistory(())


def _value(total: ColumnTotal | None, name: str) -> _Value | None:
    if total is None:
        return None
    if name == "passed":
        return _Value(total.share, total.passing.interval, f"{total.passed} of {total.cases}")
    mean = total.figures.get(name)
    if mean is None:
        return None
    return _Value(mean.value, mean.interval, f"{mean.value:.4g}")


def _line(column: str, row: Sequence[_Value | None], points: Sequence[EvaluationPoint], highest: float) -> ColumnLine:
    marks = []
    words = []
    step = (WIDTH - LEFT - RIGHT) / max(1, len(points) - 1)
    for number, (each, point) in enumerate(zip(row, points, strict=True)):
        if each is not None:
            x = round(LEFT + number * step, 1)
            interval = each.interval or Interval(each.value, each.value)
            low = _height(max(0.0, interval.low), highest)
            marks.append(Mark(x, _height(each.value, highest), low, _height(interval.high, highest)))
            words.append(f"{point.label}: {each.said}")
    polyline = " ".join(f"{mark.x},{mark.y}" for mark in marks)
    return ColumnLine(column, tuple(marks), polyline, "; ".join(words))


def _height(value: float, highest: float) -> float:
    return round(HEIGHT - BOTTOM - value / highest * (HEIGHT - TOP - BOTTOM), 1)


def read_history(folder: Path, shown: Evaluation, file: Path) -> EvaluationHistory:
    """Reads the finished evaluations in a folder that have the same file of cases as the evaluation that is shown.

    The history includes the evaluation that is shown. `file` has its results and may be in the same folder.
    """
    if not folder.is_dir():
        raise SuiteError(f"--history {folder}: there is no such folder")
    found: list[tuple[datetime, Evaluation]] = [(_began(file, shown), shown)]
    left_out: list[str] = []
    for each in sorted(folder.glob("*.jsonl")):
        if real_path(each) == real_path(file):
            continue
        try:
            evaluation = read_evaluation(each)
        except SuiteError:
            left_out.append(f"{each.name} has no evaluation")
            continue
        if Path(evaluation.header.file).name != Path(shown.header.file).name:
            left_out.append(f"{each.name} belongs to {evaluation.header.file}")
        elif evaluation.header.shard or not evaluation.is_finished:
            left_out.append(f"{each.name} has only a part of an evaluation")
        else:
            found.append((_began(each, evaluation), evaluation))
    found.sort(key=lambda pair: pair[0])
    points = [
        EvaluationPoint(f"{began:%Y-%m-%d %H:%M}", {total.column: total for total in each.totals})
        for began, each in found
    ]
    return EvaluationHistory(tuple(points), tuple(left_out))


def _began(file: Path, evaluation: Evaluation) -> datetime:
    """Returns the time when an evaluation began, or when its file was last changed if the header has no time."""
    try:
        began = datetime.fromisoformat(evaluation.header.began)
    except ValueError:
        began = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    if began.tzinfo is None:
        began = began.replace(tzinfo=UTC)
    return began.astimezone(UTC)

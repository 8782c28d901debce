"""Two runs beside each other."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import shorten
from typing import Literal

from starlette.responses import RedirectResponse, Response

from devhost.comparison.comparison import Comparison, Row, Side, rows
from devhost.console.folder import RunFolder
from devhost.console.setup import Values, lines_in, number_in
from devhost.console.web import Console
from devhost.errors import ParameterError
from devhost.fork import Origin, find_origin
from devhost.recording.turns import settings
from devhost.trace.lines import read_trace


@dataclass(frozen=True)
class Pair:
    """Two runs of the folder beside each other, as far as they have come."""

    comparison: Comparison
    settings: list[Row]
    """Question, strategy and parameters, where they differ."""
    kept: int | None
    """How many rounds of the first run the second one repeats; None if it is not a fork of it."""
    turns: Literal["recorded", "written", ""]
    """What the model of the second run said, if another instruction was given to one that is not real."""

    @property
    def answer(self) -> list[Row]:
        """The whole answers."""
        return rows(self.comparison.left.answer, self.comparison.right.answer, whole=True)


def read_pair(folder: RunFolder, left: str, right: str) -> Pair:
    """TraceError for one that has not asked its strategy."""
    setup = folder.setup(right)
    fork = setup.values if setup is not None and setup.kind == "fork" and setup.of == left else None
    before = _origin(folder, left, None if fork is None else number_in(fork, "turn"))
    after = _origin(folder, right, None)
    names = ("before", "run again") if fork is not None else _names(before, after)
    repeats = fork is not None and after.trace.header.model.scripted and not fork.get("script")
    return Pair(
        Comparison(names, Side(before), Side(after, repeats)),
        rows(list(_set(before)), list(_set(after))),
        None if fork is None else number_in(fork, "at") or 0,
        _turns(before, after, repeats=repeats),
    )


def _names(before: Origin, after: Origin) -> tuple[str, str]:
    """What tells the two runs apart, in a few words."""

    def facts(origin: Origin) -> Iterator[str]:
        header = origin.trace.header
        yield from (origin.run.question, origin.strategy, header.model.name)
        yield f"{header.started:%Y-%m-%d %H:%M:%S}"

    pairs = zip(facts(before), facts(after), strict=True)
    left, right = next((pair for pair in pairs if pair[0] != pair[1]), ("the first", "the second"))
    return shorten(left, 60, placeholder=" …"), shorten(right, 60, placeholder=" …")


def _origin(folder: RunFolder, name: str, turn: int | None) -> Origin:
    file = folder.trace(name)
    return find_origin(read_trace(file), file, turn)


def _turns(before: Origin, after: Origin, *, repeats: bool) -> Literal["recorded", "written", ""]:
    told = [origin.run.parameters.get("instruction") for origin in (before, after)]
    if told[0] == told[1] or not after.trace.header.model.scripted:
        return ""
    return "recorded" if repeats else "written"


def _set(origin: Origin) -> Iterator[str]:
    """What was set, in lines."""
    known = settings(origin.run.parameters)
    asked: dict[str, object] = {"question": origin.run.question, "strategy": origin.strategy}
    for name in sorted(known["params"]):
        match known["params"][name]:
            case {"variable": str(variable)} as written:
                asked[name] = known["variables"].get(variable, written)
            case written:
                asked[name] = written
    for name, value in asked.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
        yield from f"{name}: {text}".splitlines()


# The pages.


def chosen(console: Console, asked: Values) -> Response:
    """As the list of runs asks: the first in the list is the newer one, and stands right."""
    match lines_in(asked, "run"):
        case (newer, older):
            for name in (newer, older):
                console.folder.trace(name)  # only the names of runs fit into an address as they are
            return RedirectResponse(f"/compare/{older}/{newer}", 303)
        case names:
            raise ParameterError(f"two runs can be compared: choose two of the list, not {len(names)}")


def side_by_side(console: Console, _asked: Values, left: str, right: str) -> Response:
    pair = read_pair(console.folder, left, right)
    titles = (console.title(left), console.title(right))
    return console.page("side_by_side.html.j2", pair=pair, left=left, right=right, titles=titles)

"""Two runs beside each other."""

import json
from collections.abc import Iterator
from textwrap import shorten

from starlette.responses import RedirectResponse, Response

from devhost.comparison.comparison import Comparison, Side, rows
from devhost.console.folder import RunFolder
from devhost.console.setup import INSTRUCTION, Values, lines_in, number_in
from devhost.console.web import Console
from devhost.errors import ParameterError
from devhost.fork import Origin, find_origin
from devhost.recording.turns import settings
from devhost.trace.lines import read_trace


def _names(before: Origin, after: Origin) -> tuple[str, str]:
    """What tells the two runs apart, in a few words."""

    def facts(origin: Origin) -> tuple[str, ...]:
        header = origin.trace.header
        return origin.run.question, origin.strategy, header.model.name, f"{header.started:%Y-%m-%d %H:%M:%S}"

    pairs = zip(facts(before), facts(after), strict=True)
    left, right = next((pair for pair in pairs if pair[0] != pair[1]), ("the first", "the second"))
    return shorten(left, 60, placeholder=" …"), shorten(right, 60, placeholder=" …")


def _origin(folder: RunFolder, name: str, turn: int | None) -> Origin:
    file = folder.trace(name)
    return find_origin(read_trace(file), file, turn)


def _set(origin: Origin) -> Iterator[str]:
    """What was set, in lines."""
    known = settings(origin.run.parameters)
    asked = {"question": origin.run.question, "strategy": origin.strategy, **dict(sorted(known["params"].items()))}
    for name, written in asked.items():
        value = known["variables"].get(written["variable"], written) if isinstance(written, dict) else written
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
        yield from f"{name}: {text}".splitlines()


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
    """TraceError for a run that has not asked its strategy."""
    setup = console.folder.setup(right)
    fork = setup.values if setup is not None and setup.kind == "fork" and setup.of == left else None
    before = _origin(console.folder, left, None if fork is None else number_in(fork, "turn"))
    after = _origin(console.folder, right, None)
    names = _names(before, after) if fork is None else ("before", "run again")
    scripted = after.trace.header.model.scripted
    repeats = fork is not None and scripted and not fork.get("script")
    told = [origin.run.parameters.get(INSTRUCTION) for origin in (before, after)]
    comparison = Comparison(names, Side(before), Side(after, repeats))
    return console.page(
        "side_by_side.html.j2",
        left=left,
        right=right,
        titles=(console.title(left), console.title(right)),
        comparison=comparison,
        settings=rows(list(_set(before)), list(_set(after))),
        answer=rows(comparison.left.answer, comparison.right.answer, whole=True),
        kept=None if fork is None else number_in(fork, "at") or 0,
        repeats=repeats,
        instruction_is_unread=scripted and told[0] != told[1],
    )

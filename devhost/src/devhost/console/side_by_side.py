"""Two runs beside each other."""

from textwrap import shorten

from starlette.responses import RedirectResponse, Response

from devhost.comparison.comparison import compared
from devhost.comparison.side import Side
from devhost.console.folder import RunFolder
from devhost.console.setup import INSTRUCTION, Values, lines_in, number_in
from devhost.console.web import Console
from devhost.errors import ParameterError, TraceError
from devhost.trace.lines import Trace, read_trace
from devhost.trace.turns import TracedTurn, last_conversation


def _names(before: tuple[Trace, TracedTurn], after: tuple[Trace, TracedTurn]) -> tuple[str, str]:
    """What tells the two runs apart, in a few words."""

    def facts(trace: Trace, turn: TracedTurn) -> tuple[str, ...]:
        header = trace.header
        return turn.question, turn.facts.name, header.model.name, f"{header.started:%Y-%m-%d %H:%M:%S}"

    pairs = zip(facts(*before), facts(*after), strict=True)
    left, right = next((pair for pair in pairs if pair[0] != pair[1]), ("the first", "the second"))
    return shorten(left, 60, placeholder=" …"), shorten(right, 60, placeholder=" …")


def _read(folder: RunFolder, name: str) -> tuple[Trace, list[TracedTurn]]:
    """The trace, and the turns of its last conversation; TraceError without one."""
    trace = read_trace(folder.trace(name))
    turns = last_conversation(trace)
    if not turns:
        raise TraceError(f"the run {name} ended before anything was asked: there is nothing to compare")
    return trace, turns


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
    """TraceError for a run without a turn."""
    setup = console.folder.setup(right)
    fork = None
    if setup is not None and setup.kind == "fork" and setup.of == left:
        fork = setup.values
    trace_before, before = _read(console.folder, left)
    trace_after, after = _read(console.folder, right)
    names = ("before", "run again")
    if fork is None:
        names = _names((trace_before, before[0]), (trace_after, after[0]))
    elif number := number_in(fork, "turn"):
        before = before[number - 1 : number]
    else:
        before = before[-1:]
    scripted = trace_after.header.model.scripted
    repeats = fork is not None and scripted and not fork.get("script")
    told = [[run.parameters.get(INSTRUCTION) for turn in turns for run in turn.traced] for turns in (before, after)]
    sides = [Side(turn, repeats) for turn in after]
    runs = compared(names, [Side(turn) for turn in before], sides)
    return console.page(
        "side_by_side.html.j2",
        left=left,
        right=right,
        titles=(console.title(left), console.title(right)),
        runs=runs,
        not_recorded=[call for side in sides for call in side.not_recorded],
        kept=None if fork is None else number_in(fork, "at") or 0,
        repeats=repeats,
        instruction_is_unread=runs.is_alike and scripted and told[0] != told[1],
    )

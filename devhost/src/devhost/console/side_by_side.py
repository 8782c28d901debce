"""The page that compares two runs side by side."""

from starlette.responses import RedirectResponse, Response

from devhost.comparison.comparison import compared, names_of, read_compared
from devhost.comparison.side import Side
from devhost.console.setup import INSTRUCTION, Values, lines_in, number_in
from devhost.console.web import Console
from devhost.errors import ParameterError


def chosen(console: Console, asked: Values) -> Response:
    """Redirects from the two runs chosen in the list to their comparison. The list has the newer run first."""
    match lines_in(asked, "run"):
        case (newer, older):
            for name in (newer, older):
                console.folder.trace(name)  # raises unless it is the name of a run, which an address need not escape
            return RedirectResponse(f"/compare/{older}/{newer}", 303)
        case names:
            raise ParameterError(f"two runs can be compared: choose two of the list, not {len(names)}")


def side_by_side(console: Console, _asked: Values, left: str, right: str) -> Response:
    """Shows two runs beside each other. Raises TraceError for a run without a turn."""
    setup = console.folder.setup(right)
    fork = None
    if setup is not None and setup.kind == "fork" and setup.of == left:
        fork = setup.values
    trace_before, before = read_compared(console.folder.trace(left))
    trace_after, after = read_compared(console.folder.trace(right))
    names = ("before", "run again")
    if fork is None:
        names = names_of((trace_before, before[0]), (trace_after, after[0]))
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

"""The page with the list of runs, and the action that deletes runs."""

from collections import Counter

from starlette.responses import RedirectResponse, Response

from devhost.console.found import shortened
from devhost.console.listing import STATES
from devhost.console.setup import Values, lines_in
from devhost.console.web import Console
from devhost.errors import ConsoleError


def list_of_runs(console: Console, asked: Values) -> Response:
    """Shows the list. The page requests itself again and again to show runs that begin or end."""
    search = asked.get("search", "").strip()
    ending = asked.get("ending", "")
    listing = console.index.runs(console.children.is_running)
    traces = [run for run in listing.runs if not run.problem]
    matching = [run for run in traces if run.has(search.casefold().split())]
    shown = [run for run in matching if ending in {"", run.state}]
    states = Counter(run.state for run in matching)
    counts: dict[str, int] = {"": len(matching), **{state: states[state] for state in STATES}}
    return console.page(
        "runs.html.j2",
        search=search,
        ending=ending,
        runs=shown[:100],
        counts=counts,
        total=len(shown),
        problems=[run for run in listing.runs if run.problem],
        unread=listing.unread,
        is_empty=not traces,
        folder=shortened(console.folder.path.resolve()),
    )


def delete(console: Console, given: Values) -> Response:
    """Deletes the chosen runs. Raises ConsoleError for a run that has not ended."""
    for name in lines_in(given, "run"):
        if console.goes_on(name):
            raise ConsoleError(f"the run {name!r} has not ended: end it before you delete it")
        console.folder.delete(name)
    return RedirectResponse("/", 303)

"""`/`: the runs of the folder; `/delete`: removes some of them from it."""

from collections.abc import Mapping, Sequence

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from devhost.console.folder import DELETED
from devhost.console.listing import STATES, Listed, Wanted, find, read_run
from devhost.console.setup import lines_in
from devhost.console.web import Console, console_of, posted
from devhost.errors import ConsoleError

PATIENCE_SECONDS = 0.5
"""So long a page waits for traces that were not read yet. It asks for the others soon."""
PATIENCE_OF_END_SECONDS = 10.0
"""So long a deletion waits for the plugins of a conversation to end."""


def list_of_runs(request: Request) -> Response:
    """The page asks for itself again and again, and takes what changes as runs begin and end."""
    console = console_of(request)
    found = find(console.index.look(PATIENCE_SECONDS), Wanted.of(request.query_params))
    return console.page("runs.html.j2", found=found, states=STATES, folder=console.folder.path.resolve())


def ask_to_delete(request: Request) -> Response:
    console = console_of(request)
    chosen = _chosen(console, request.query_params.getlist("run"))
    busy = [run for run in chosen if _is_busy(console, run)]
    return console.page("delete.html.j2", chosen=chosen, busy=busy, deleted=console.folder.path.resolve() / DELETED)


@posted
def delete(request: Request, given: Mapping[str, str]) -> Response:
    """None of them if one is not there, or goes on. Conversations that only wait are ended."""
    console, names = console_of(request), lines_in(given, "run")
    if busy := [run.name for run in _chosen(console, names) if _is_busy(console, run)]:
        raise ConsoleError(f"the run {busy[0]!r} goes on: stop it before you delete it")
    for name in names:
        if child := console.children.of(name):
            child.close_input()
            child.wait(PATIENCE_OF_END_SECONDS)
        console.folder.delete(name)
    return RedirectResponse("/", 303)


def _chosen(console: Console, names: Sequence[str]) -> Sequence[Listed]:
    """UnknownRunError if one is not there."""
    for name in names:
        console.folder.trace(name)
    return [console.index.listed(read_run(console.folder, name)) for name in names]


def _is_busy(console: Console, run: Listed) -> bool:
    """Whether it works, or waits in a process that is not this console's."""
    return run.is_written and not (run.waits and console.children.is_running(run.name))


ROUTES = (
    Route("/", list_of_runs),
    Route("/delete", ask_to_delete),
    Route("/delete", delete, methods=["POST"]),
)

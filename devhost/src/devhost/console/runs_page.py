"""`/`: the runs of the folder; `/delete`: removes some of them from it."""

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from devhost.console.found import shortened
from devhost.console.listing import find
from devhost.console.setup import lines_in
from devhost.console.web import console_of, posted
from devhost.errors import ConsoleError


def list_of_runs(request: Request) -> Response:
    """The page asks for itself again and again, and takes what changes as runs begin and end."""
    console, query = console_of(request), request.query_params
    found = find(console.index.runs(), query.get("search", "").strip(), query.get("ending", ""))
    return console.page("runs.html.j2", found=found, folder=shortened(console.folder.path.resolve()))


@posted
def delete(request: Request, given: Mapping[str, str]) -> Response:
    console = console_of(request)
    for name in lines_in(given, "run"):
        if console.children.is_running(name):
            raise ConsoleError(f"the run {name!r} goes on: end it before you delete it")
        console.folder.delete(name)
    return RedirectResponse("/", 303)


ROUTES = (Route("/", list_of_runs), Route("/delete", delete, methods=["POST"]))

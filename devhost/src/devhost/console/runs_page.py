"""The list of the folder's runs, and what removes some of them from it."""

from starlette.responses import RedirectResponse, Response

from devhost.console.found import shortened
from devhost.console.listing import find
from devhost.console.setup import Values, lines_in
from devhost.console.web import Console
from devhost.errors import ConsoleError


def list_of_runs(console: Console, asked: Values) -> Response:
    """The page asks for itself again and again, and takes what changes as runs begin and end."""
    found = find(console.index.runs(), asked.get("search", "").strip(), asked.get("ending", ""))
    return console.page("runs.html.j2", found=found, folder=shortened(console.folder.path.resolve()))


def delete(console: Console, given: Values) -> Response:
    for name in lines_in(given, "run"):
        if console.children.is_running(name):
            raise ConsoleError(f"the run {name!r} goes on: end it before you delete it")
        console.folder.delete(name)
    return RedirectResponse("/", 303)

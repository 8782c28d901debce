"""`/compare/A/B`: two runs beside each other; it stays true while the second one goes on."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from devhost.console.again import read_pair, setup_of
from devhost.console.pages.render import Part, live_part
from devhost.console.runs import OUTPUT, TRACE, last_printed, typed_fork
from devhost.console.views.console import Console, console_of
from devhost.errors import ParameterError
from devhost.trace.lines import is_written


def chosen(request: Request) -> Response:
    """`/compare?run=A&run=B`, as the list of runs asks: the first in the list is the newer one, and stands right.

    UnknownRunError for a run that is not there: only the names of runs fit into an address as they are.
    """
    console = console_of(request)
    names = request.query_params.getlist("run")
    try:
        newer, older = names
    except ValueError:
        raise ParameterError(f"two runs can be compared: choose two of the list, not {len(names)}") from None
    for name in names:
        console.folder.trace(name)
    return RedirectResponse(f"/compare/{older}/{newer}", 303)


def side_by_side(request: Request) -> Response:
    console, left, right = _asked(request)
    return console.page(
        "side_by_side.html.j2",
        left=left,
        right=right,
        command=_command(console, right),
        part=_part(console, left, right).html,
        goes_on=_goes_on(console, right),
    )


def events(request: Request) -> Response:
    console, left, right = _asked(request)
    traces = [console.folder.trace(name) for name in (left, right)]

    def version() -> object:
        """The child first: what it wrote before it ended is then seen."""
        goes_on = _goes_on(console, right)
        return goes_on, *((trace.stat().st_size if trace.is_file() else -1) for trace in traces)

    return live_part(lambda: _part(console, left, right), version, console.ending)


def _asked(request: Request) -> tuple[Console, str, str]:
    """UnknownRunError for a run that is not there."""
    console = console_of(request)
    left, right = request.path_params["left"], request.path_params["right"]
    for name in (left, right):
        console.folder.trace(name)
    return console, left, right


def _part(console: Console, left: str, right: str) -> Part:
    goes_on = _goes_on(console, right)
    pair = read_pair(console.folder, left, right)
    said = last_printed(console.folder.beside(right, OUTPUT))
    html = console.pages.render(
        "compared.html.j2",
        left=left,
        right=right,
        pair=pair,
        goes_on=goes_on,
        said=said,
    )
    return Part(html, goes_on)


def _goes_on(console: Console, name: str) -> bool:
    """As a child of this console, or as a process of a terminal or of a console that is gone."""
    return console.children.is_running(name) or is_written(console.folder.trace(name))


def _command(console: Console, name: str) -> str:
    """Of a fork that the console started."""
    setup = setup_of(console.folder, name)
    return typed_fork(setup, console.folder.beside(setup.of, TRACE)) if setup.kind == "fork" else ""


ROUTES = (
    Route("/compare", chosen),
    Route("/compare/{left}/{right}", side_by_side),
    Route("/compare/{left}/{right}/events", events),
)

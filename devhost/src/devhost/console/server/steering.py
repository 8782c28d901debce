"""`/runs/NAME/state` and `/runs/NAME/steer`: what a run waits for, and what a person says to it."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from devhost.console.asking import approved, rejected, said, waiting_of
from devhost.console.children import Child
from devhost.console.views.console import console_of, typed
from devhost.errors import ConsoleError


def state(request: Request) -> Response:
    """A part of the run's page."""
    console, name = console_of(request), request.path_params["name"]
    seen = console.readers.of(console.folder.trace(name)).read()
    waiting = waiting_of(console.folder, name, console.children.of(name), seen.runs)
    return console.page("waiting.html.j2", waiting=waiting)


async def steer(request: Request) -> Response:
    name = request.path_params["name"]
    form = await typed(request)
    console = console_of(request)
    child = console.children.of(name)
    if child is None or child.exit_code is not None:
        raise ConsoleError(f"the conversation {name} is over: start it again")
    await run_in_threadpool(_obey, child, form)
    return RedirectResponse(f"/runs/{name}#waiting", 303)


def _obey(child: Child, form: dict[str, str]) -> None:
    words = form.get("words", "").replace("\r\n", "\n").strip()
    match form.get("do"):
        case "stop":
            child.stop()
        case "end":
            child.close_input()
        case "kill":
            child.kill()
        case "approve":
            _tell(child, approved(), form)
        case "reject":
            _tell(child, rejected(words), form)
        case "say" if words:
            _tell(child, said(words), form)
        case "say":
            raise ConsoleError("a question needs words")
        case other:
            raise ConsoleError(f"a run cannot be told to {other!r}")


def _tell(child: Child, line: str, form: dict[str, str]) -> None:
    """`told`: how many lines the child had got when the page was made."""
    told = form.get("told", "")
    if not child.tell(line, int(told) if told.isdecimal() else -1):
        raise ConsoleError("this was not sent: the conversation has gone on or ended since the page was loaded")


ROUTES = (
    Route("/runs/{name}/state", state),
    Route("/runs/{name}/steer", steer, methods=["POST"]),
)

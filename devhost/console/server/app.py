"""The application: all addresses of the console behind the guard."""

from collections.abc import Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from devhost.console.pages.render import STATIC, style_sheet
from devhost.console.playing import new_run, steering
from devhost.console.server.security import Guard
from devhost.console.views import again, cases, one_run, run_list, side_by_side, suite
from devhost.console.views.console import Console, console_of
from devhost.errors import BusyError, HostError, UnknownRunError


def application(console: Console, port: int, token: str) -> Starlette:
    app = Starlette(
        routes=[
            *run_list.ROUTES,
            *one_run.ROUTES,
            *again.ROUTES,
            *cases.ROUTES,
            *side_by_side.ROUTES,
            *new_run.ROUTES,
            *steering.ROUTES,
            *suite.ROUTES,
            Route("/static/console.css", styles),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        middleware=[Middleware(Guard, port=port, token=token)],
        exception_handlers={
            HTTPException: _problem("Not found", lambda error: str(getattr(error, "detail", error))),
            BusyError: _busy,
            HostError: _problem("This did not work", str),
            OSError: _problem("This did not work", _of_file),
        },
    )
    app.state.console = console
    return app


def styles(_request: Request) -> Response:
    return Response(style_sheet(), media_type="text/css")


def _of_file(error: Exception) -> str:
    """Such as a folder of runs that was deleted."""
    return f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)


def _problem(title: str, words: Callable[[Exception], str]) -> Callable[[Request, Exception], Response]:
    """A page that says what is wrong."""

    def answer(request: Request, error: Exception) -> Response:
        status = getattr(error, "status_code", 404 if isinstance(error, UnknownRunError) else 400)
        return console_of(request).page("problem.html.j2", status, title=title, sentence=words(error), runs=())

    return answer


def _busy(request: Request, error: Exception) -> Response:
    """With links to the runs; an evaluation is none."""
    console = console_of(request)
    known = set(console.folder.names())
    runs = [name for name in error.names if name in known] if isinstance(error, BusyError) else []
    return console.page("problem.html.j2", 400, title="Nothing was started", sentence=str(error), runs=runs)

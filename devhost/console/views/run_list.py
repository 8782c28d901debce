"""`/`: the runs of the folder."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from devhost.console.views.console import console_of


def list_of_runs(request: Request) -> Response:
    console = console_of(request)
    return console.page("runs.html.j2", names=console.folder.names(), folder=console.folder.path)


ROUTES = (Route("/", list_of_runs),)

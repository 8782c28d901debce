"""`/runs/NAME`: one run, from its trace."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from devhost.console.views.console import console_of
from devhost.page.parts.attachments import Attachments
from devhost.page.parts.shown import shown_run
from devhost.trace.reader import read_trace
from devhost.trace.runs import traced_runs


def one_run(request: Request) -> Response:
    console = console_of(request)
    name = request.path_params["name"]
    file = console.folder.trace(name)
    if not file.is_file():
        return console.page("one_run.html.j2", name=name, runs=[])
    trace = read_trace(file)
    attachments = Attachments(None)
    runs = [shown_run(number, each, trace, attachments) for number, each in enumerate(traced_runs(trace), start=1)]
    return console.page("one_run.html.j2", name=name, runs=runs)


ROUTES = (Route("/runs/{name}", one_run),)

"""`/runs/NAME`: one run, or the turns of a conversation, live while it goes on.

`/runs/NAME/events` streams what changes, `/runs/NAME/rows/ROW` is what a row holds, cut where it is
long, and with `/text` at its end all of it. `/runs/NAME/search?words=` names the rows that have the words.
"""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Mapping

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from devhost.console.asking import waiting_of
from devhost.console.live import Listener, Rendering, Section, matching_rows, row_text
from devhost.console.views.console import Console, console_of
from devhost.errors import UnknownRunError
from devhost.golang import well_formed
from devhost.page.shown import ShownRun
from devhost.trace.timeline import Span

LEAST_SECONDS = 0.15
SHARE = 4
"""A page that took a second to render is rendered again after so many, so that a long run leaves time for itself."""
EVENT_STREAM = "text/event-stream"


def one_run(request: Request) -> Response:
    console = console_of(request)
    name = request.path_params["name"]
    seen = console.readers.of(console.folder.trace(name)).read()
    rendering = Rendering(console.pages.environment)
    sections = [(shown, _marked(rendering.section(shown))) for shown in seen.runs]
    waiting = waiting_of(console.folder, name, console.children.of(name), seen.runs)
    return console.page(
        "one_run.html.j2",
        name=name,
        trace=seen.trace,
        is_asked=bool(seen.runs),
        sections=sections,
        waiting=waiting,
    )


def _marked(section: Section) -> Mapping[str, Markup]:
    """Its pieces as the HTML that they are."""
    return {name: Markup(html) for name, html in section.pieces.items()}  # noqa: S704 - rendered by the templates


def row(request: Request) -> Response:
    console = console_of(request)
    shown, span = _found(console, request)
    address = request.url.path
    return HTMLResponse(console.pages.render("row_inside.html.j2", span=span, shown=shown, address=address))


def row_as_text(request: Request) -> Response:
    _, span = _found(console_of(request), request)
    return PlainTextResponse(well_formed(row_text(span)))


def search(request: Request) -> Response:
    console = console_of(request)
    seen = console.readers.of(console.folder.trace(request.path_params["name"])).read()
    words = request.query_params.get("words", "")
    return JSONResponse([row for shown in seen.runs for row in matching_rows(shown, words)])


def _found(console: Console, request: Request) -> tuple[ShownRun, Span]:
    anchor = request.path_params["row"]
    seen = console.readers.of(console.folder.trace(request.path_params["name"])).read()
    for shown in seen.runs:
        for _, span in shown.rows:
            if shown.anchors[id(span)] == anchor:
                return shown, span
    raise UnknownRunError(f"the run has no row {anchor!r}")


def events(request: Request) -> Response:
    console = console_of(request)
    name = request.path_params["name"]
    listener = Listener(name, console.readers.of(console.folder.trace(name)), console.pages)
    return StreamingResponse(_told(listener, console.ending), media_type=EVENT_STREAM)


async def _told(listener: Listener, ending: threading.Event) -> AsyncIterator[str]:
    """Everything at first, then what changes, until the browser or the console ends it."""
    yield "retry: 1000\n\n"
    while not ending.is_set():
        began = time.monotonic()
        for event in await run_in_threadpool(listener.news):
            yield event
        await asyncio.sleep(max(LEAST_SECONDS, SHARE * (time.monotonic() - began)))


ROUTES = (
    Route("/runs/{name}", one_run),
    Route("/runs/{name}/events", events),
    Route("/runs/{name}/search", search),
    Route("/runs/{name}/rows/{row}", row),
    Route("/runs/{name}/rows/{row}/text", row_as_text),
)

"""`/runs/NAME`: one run, or the turns of a conversation, live while it goes on.

`events` streams what changes, `rows/ROW` is what a row holds, cut where it is long, and with `/text` at its end all of
it; `search?words=` names the rows that have the words, and `steer` says something to the run.
"""

from collections.abc import Callable, Mapping
from functools import partial

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from devhost.console.conversation import obey, waiting_of
from devhost.console.folder import OUTPUT
from devhost.console.readers import RunReader, Seen, Turn, matching_rows, row_text
from devhost.console.web import Console, Parts, Told, changed_at, console_of, live, posted
from devhost.errors import ConsoleError, TraceError, UnknownRunError
from devhost.golang import well_formed
from devhost.page.section import ShownRun
from devhost.trace.lines import is_written
from devhost.trace.timeline import Span


def one_run(request: Request) -> Response:
    console, name = console_of(request), request.path_params["name"]
    reader = console.readers.of(console.folder.trace(name))
    seen = reader.read()
    parts = {part: Markup(html) for part, html in _parts(console, name, reader, seen, Told()).items()}  # noqa: S704 - rendered
    return console.page("one_run.html.j2", name=name, title=_title(console, name, seen), parts=parts)


def _parts(console: Console, name: str, reader: RunReader, seen: Seen, told: Told) -> Mapping[str, str]:
    """All that the page shows of the run, although its files may be gone by now."""
    row, turn_of_flow = console.macro("row.html.j2", "row"), console.macro("flow_section.html.j2", "section")

    def render(span: Span, shown: ShownRun) -> str:
        return row(span, 0, shown, lazy=f"/runs/{name}/rows/")

    def pieces(turn: Turn) -> list[Markup]:
        if isinstance(turn.shown, ShownRun):
            return [told.piece(anchor, html) for anchor, html in reader.rows(turn.shown, render).items()]
        return [told.piece(f"flow-{turn.shown.number}", reader.once(turn, partial(turn_of_flow, turn.shown)))]

    waiting = waiting_of(console.folder, name, console.children.of(name), seen)
    return {
        "head": console.render(
            "run_head.html.j2", name=name, trace=seen.trace, title=_title(console, name, seen), turns=seen.turns
        ),
        "said": console.render("run_said.html.j2", turns=seen.turns, waiting=waiting),
        "runs": console.render("run_sections.html.j2", sections=[(turn, pieces(turn)) for turn in seen.turns]),
        "waiting": console.render("waiting.html.j2", waiting=waiting),
        "problem": "",
    }


def _title(console: Console, name: str, seen: Seen) -> str:
    """Its first question."""
    setup = console.folder.setup(name)
    first = [turn.question for turn in seen.turns] or ([] if setup is None else [setup.question])
    return next((" ".join(question.split()) for question in first if question.strip()), name)


def events(request: Request) -> Response:
    console = console_of(request)
    return live(console, *watched(console, request.path_params["name"]))


def watched(console: Console, name: str) -> tuple[Callable[[Told], Parts], Callable[[], object]]:
    """What one browser that watches a run is shown at a look, and what changes whenever that does."""
    reader = console.readers.of(console.folder.trace(name))
    shown = Seen(None)

    def look(told: Told) -> Parts:
        nonlocal shown
        try:
            seen = reader.read()
        except TraceError as error:
            return _problem(console, str(error))
        if shown.trace is not None and seen.trace is None:  # a run that writes over it empties it first
            return _problem(
                console, "" if reader.file.exists() else f"{reader.file} is gone: this page shows what was in it."
            )
        shown = seen
        return Parts(_parts(console, name, reader, seen, told))

    def version() -> object:
        """The child first: what it wrote before it ended is then seen."""
        child = console.children.of(name)
        at = None if child is None else (child.exit_code, child.told)
        return at, is_written(reader.file), changed_at(reader.file, console.folder.beside(name, OUTPUT))

    return look, version


def _problem(console: Console, sentence: str) -> Parts:
    return Parts({"problem": console.render("sentence.html.j2", sentence=sentence)})


def row(request: Request) -> Response:
    console, address = console_of(request), request.url.path
    shown, span = _found(request)
    return HTMLResponse(console.render("row_inside.html.j2", span=span, shown=shown, address=address))


def row_as_text(request: Request) -> Response:
    return PlainTextResponse(well_formed(row_text(_found(request)[1])))


def search(request: Request) -> Response:
    words = request.query_params.get("words", "")
    return JSONResponse([row for shown in _seen(request).runs for row in matching_rows(shown, words)])


def _seen(request: Request) -> Seen:
    console = console_of(request)
    return console.readers.of(console.folder.trace(request.path_params["name"])).read()


def _found(request: Request) -> tuple[ShownRun, Span]:
    anchor = request.path_params["row"]
    found = _seen(request).row(anchor)
    if found is None:
        raise UnknownRunError(f"the run has no row {anchor!r}")
    return found


@posted
def steer(request: Request, given: Mapping[str, str]) -> Response:
    """A page with scripts gets what the run waits for then, and the sentence of a refusal in it."""
    console, name, refused = console_of(request), request.path_params["name"], ""
    child = console.children.of(name)
    try:
        obey(child, name, given)
    except ConsoleError as error:
        if "hx-request" not in request.headers:
            raise
        refused = str(error)
    if "hx-request" not in request.headers:
        return RedirectResponse(f"/runs/{name}#waiting", 303)
    waiting = waiting_of(console.folder, name, child, _seen(request))
    return HTMLResponse(console.render("waiting.html.j2", waiting=waiting, refused=refused))


ROUTES = (
    Route("/runs/{name}", one_run),
    Route("/runs/{name}/events", events),
    Route("/runs/{name}/search", search),
    Route("/runs/{name}/rows/{row}", row),
    Route("/runs/{name}/rows/{row}/text", row_as_text),
    Route("/runs/{name}/steer", steer, methods=["POST"]),
)

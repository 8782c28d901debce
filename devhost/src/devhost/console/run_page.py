"""`/runs/NAME`: one run, or the turns of a conversation, while it goes on too.

`rows/ROW` is what a row holds, `find` looks for words in all rows, and `steer` says something to the run.
"""

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from devhost.console.conversation import form_of, obey, values_in, waiting_of
from devhost.console.web import NOTHING_NEW, console_of, is_shown, posted
from devhost.errors import ConsoleError, UnknownRunError


def one_run(request: Request) -> Response:
    console, name = console_of(request), request.path_params["name"]
    version = console.version(name)
    return Response(status_code=NOTHING_NEW) if is_shown(request, version) else _page(request, version)


def _page(request: Request, version: str, refused: str = "", given: Mapping[str, str] | None = None) -> Response:
    """`refused`: why what was `given` last had no effect."""
    console, name = console_of(request), request.path_params["name"]
    seen = console.seen(name)
    setup = console.folder.setup(name)
    waiting = waiting_of(console.folder, name, console.children.of(name), seen)
    form = waiting.state.form
    given = given if given and form and form.form == given.get("form") else {}
    typed = values_in(form, given) if form else {}
    questions = [turn.question for turn in seen.turns] or ([] if setup is None else [setup.question])
    return console.page(
        "one_run.html.j2",
        name=name,
        title=next((" ".join(question.split()) for question in questions if question.strip()), name),
        trace=seen.trace,
        turns=seen.turns,
        before="" if setup is None else setup.of,
        waiting=waiting,
        typed=typed,
        wrong=form.refused(typed) if form and given else {},
        refused=refused,
        version=version,
    )


def row(request: Request) -> Response:
    console, anchor = console_of(request), request.path_params["row"]
    found = console.seen(request.path_params["name"]).row(anchor)
    if found is None:
        raise UnknownRunError(f"the run has no row {anchor!r}")
    shown, span = found
    return HTMLResponse(console.render("row_inside.html.j2", span=span, shown=shown))


def find(request: Request) -> JSONResponse:
    """The ids of the rows that hold all the `words`."""
    seen = console_of(request).seen(request.path_params["name"])
    return JSONResponse(seen.matching(request.query_params.get("words", "")))


@posted
def steer(request: Request, given: Mapping[str, str]) -> Response:
    console, name = console_of(request), request.path_params["name"]
    try:
        child = console.children.of(name)
        obey(child, name, given, form_of(child, console.seen(name)))
    except ConsoleError as error:
        return _page(request, console.version(name), str(error), given)
    return RedirectResponse(f"/runs/{name}", 303)


ROUTES = (
    Route("/runs/{name}", one_run),
    Route("/runs/{name}/rows/{row}", row),
    Route("/runs/{name}/find", find),
    Route("/runs/{name}/steer", steer, methods=["POST"]),
)

"""The page of a run that has ended or is going on: its turns, its rows, and the controls to answer or stop it."""

from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from devhost.console.conversation import form_of, obey, values_in, waiting_of
from devhost.console.listing import title_of
from devhost.console.setup import Values
from devhost.console.web import NOTHING_NEW, Console
from devhost.errors import ConsoleError, UnknownRunError


def one_run(console: Console, asked: Values, name: str) -> Response:
    version = console.page_version(name)
    if asked.get("seen") == version:
        return Response(status_code=NOTHING_NEW)
    return _page(console, name, version)


def _page(console: Console, name: str, version: str, refused: str = "", given: Values | None = None) -> Response:
    """Shows the run. `refused` says why the values that were `given` last had no effect."""
    seen = console.seen(name)
    setup = console.folder.setup(name)
    waiting = waiting_of(console.folder, name, console.children.of(name), seen)
    form = waiting.state.form
    if not (given and form and form.form == given.get("form")):
        given = {}
    typed = {}
    if form:
        typed = values_in(form, given)
    questions = [turn.title for turn in seen.turns] or ([] if setup is None else [setup.question])
    return console.page(
        "one_run.html.j2",
        name=name,
        title=title_of(questions, name),
        setup=setup,
        trace=seen.trace,
        turns=seen.turns,
        waiting=waiting,
        typed=typed,
        wrong=form.refused(typed) if form and given else {},
        refused=refused,
        version=version,
    )


def row(console: Console, _asked: Values, name: str, row: str) -> Response:
    found = console.seen(name).row(row)
    if found is None:
        raise UnknownRunError(f"the run has no row {row!r}")
    shown, span = found
    return HTMLResponse(console.render("row_inside.html.j2", span=span, shown=shown))


def find(console: Console, asked: Values, name: str) -> Response:
    return JSONResponse(console.seen(name).matching(asked.get("words", "")))


def steer(console: Console, given: Values, name: str) -> Response:
    try:
        child = console.children.of(name)
        obey(child, name, given, form_of(child, console.seen(name)))
    except ConsoleError as error:
        return _page(console, name, console.page_version(name), str(error), given)
    return RedirectResponse(f"/runs/{name}", 303)

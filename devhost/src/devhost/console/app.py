"""The console's web server, which listens on 127.0.0.1 and serves only the holder of its token."""

import secrets
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from devhost.console import again, cases, new_run, one_node, run_page, runs_page, side_by_side, suites, tools
from devhost.console.web import STATIC, TEMPLATES, Console, style_sheet
from devhost.errors import BusyError, ConsoleError, HostError, UnknownRunError
from devhost.text import worded

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


# Access control: only a browser on this machine that has exchanged the token for a cookie may use the console.
#
# Any page that a person visits can send requests to 127.0.0.1. Therefore the Host must be the console's own (any other
# name that resolves to it may be DNS rebinding), a request that changes something must come from the console's own
# pages, and every request needs the cookie, which the browser sends only from those pages (SameSite=Strict). Only the
# first address contains the token. The token is exchanged for the cookie and removed from the address, so that it does
# not appear in the browser's history or in referrers.

TOKEN = "token"  # noqa: S105 - the name of a parameter
READS = frozenset({"GET", "HEAD"})
POLICY: Mapping[str, str] = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "style-src-attr": "'unsafe-inline'",  # for the positions of bars on the timeline
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in POLICY.items()),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with no-referrer, browsers send "null" as the Origin of a form
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """ASGI middleware that checks each request before it reaches a route."""

    def __init__(self, app: "ASGIApp", port: int, token: str) -> None:
        self._app = app
        self._token = token
        self._hosts = frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})
        self._cookie = f"devhost-{port}"
        """The cookie's name, which contains the port, because browsers share cookies between the ports of a host."""

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: "Message") -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        answer = self._refusal(scope) or self._app
        await answer(scope, receive, send_with_headers)

    def _refusal(self, scope: "Scope") -> Response | None:
        headers = Headers(scope=scope)
        if headers.get("host") not in self._hosts:
            return _refused("the Host of the request is not this console's")
        if scope["method"] not in READS and headers.get("origin") not in {f"http://{host}" for host in self._hosts}:
            return _refused("the request does not come from a page of this console")
        query = dict(parse_qsl(scope["query_string"].decode(errors="replace"), keep_blank_values=True))
        if scope["method"] in READS and self._is_token(query.pop(TOKEN, "")):
            rest = ""
            if query:
                rest = f"?{urlencode(query)}"
            answer = RedirectResponse("/" + scope["path"].lstrip("/") + rest, 303)  # "//host" is another site
            answer.set_cookie(self._cookie, self._token, httponly=True, samesite="strict", path="/")
            return answer
        if not self._is_token(HTTPConnection(scope).cookies.get(self._cookie, "")):
            return _refused("open the address that `devhost ui` printed: it holds the token that lets you in")
        return None

    def _is_token(self, text: str) -> bool:
        return secrets.compare_digest(text.encode(), self._token.encode())


def _refused(reason: str) -> Response:
    """Returns a page without a style sheet, because the request for the style sheet would be refused as well."""
    page = (TEMPLATES / "refused.html").read_text(encoding="utf-8")
    return HTMLResponse(page.format(reason=reason), 403)


# The application: all addresses of the console behind the guard.
#
# A page is a function of the console, the values that the browser sent, and the named parts of the address. The values
# are texts from the query of the address or from the fields of a form.

type Page = Callable[..., Response]
SEVERAL = frozenset({"tools", "run"})
"""Form fields that may have several values, which are joined as lines. For any other field, the last value counts."""

SHOWN: Mapping[str, Page] = {
    "/": runs_page.list_of_runs,
    "/new": new_run.form,
    "/runs/{name}": run_page.one_run,
    "/runs/{name}/rows/{row}": run_page.row,
    "/runs/{name}/find": run_page.find,
    "/runs/{name}/again": again.form,
    "/runs/{name}/node": one_node.form,
    "/runs/{name}/keep": cases.form,
    "/compare": side_by_side.chosen,
    "/compare/{left}/{right}": side_by_side.side_by_side,
    "/tools": tools.tools,
    "/tool": tools.one_tool,
    "/suites": suites.suites,
    "/suite": suites.one_suite,
    "/static/console.css": lambda _console, _asked: Response(style_sheet(), media_type="text/css"),
}
SENT: Mapping[str, Page] = {
    "/delete": runs_page.delete,
    "/new": new_run.submit,
    "/runs/{name}/steer": run_page.steer,
    "/runs/{name}/again": again.submit,
    "/runs/{name}/node": one_node.submit,
    "/runs/{name}/keep": cases.submit,
    "/tools": tools.connect,
    "/tool": tools.call,
    "/suite": suites.change,
}
"""Forms that change something."""


def application(console: Console, port: int, token: str) -> Starlette:
    app = Starlette(
        routes=[
            *(Route(address, _answering(page)) for address, page in SHOWN.items()),
            *(Route(address, _answering(page), methods=["POST"]) for address, page in SENT.items()),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        middleware=[Middleware(Guard, port=port, token=token)],
        exception_handlers={HTTPException: _problem, HostError: _problem, OSError: _problem, ValueError: _problem},
    )
    app.state.console = console
    return app


def _answering(page: Page) -> Callable[[Request], Awaitable[Response]]:
    """Returns an endpoint that runs the page in a thread and turns the CR LF of browsers into LF."""

    async def endpoint(request: Request) -> Response:
        asked: dict[str, str] = {}
        sent = request.query_params if request.method in READS else await request.form()
        for name, value in sent.multi_items():
            if isinstance(value, str):
                text = value.replace("\r\n", "\n")
                if name in asked and name in SEVERAL:
                    asked[name] = f"{asked[name]}\n{text}"
                else:
                    asked[name] = text
        return await run_in_threadpool(page, request.app.state.console, asked, **request.path_params)

    return endpoint


def _problem(request: Request, error: Exception) -> Response:
    """Returns a page that reports the error. If too many runs are going on, the page links to them."""
    console: Console = request.app.state.console
    words = str(error)
    if isinstance(error, HTTPException):
        words = error.detail
    elif isinstance(error, OSError) and error.filename:  # such as a folder of runs that was deleted
        words = f"{error.filename}: {error.strerror}"
    status = getattr(error, "status_code", 404 if isinstance(error, UnknownRunError) else 400)
    known = set(console.folder.names())
    busy = error.names if isinstance(error, BusyError) else ()
    runs = [(name, console.title(name)) for name in busy if name in known]  # an evaluation has no such page
    return console.page("problem.html.j2", status, sentence=words, runs=runs)


# The server listens on 127.0.0.1 until Ctrl-C.

LOCAL = "127.0.0.1"


def serve(console: Console, port: int, opened: Callable[[str], None]) -> None:
    """Serves the console until Ctrl-C, then ends all child processes.

    Calls `opened` with the address that lets a browser in. Raises ConsoleError if the port is taken.
    """
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with worded(lambda why: ConsoleError(f"--port {port} cannot be opened on {LOCAL}: {why}")):
            listener.bind((LOCAL, port))
            listener.listen()  # a browser may send a request as soon as it has the address
        port = listener.getsockname()[1]
        token = secrets.token_urlsafe(24)
        config = uvicorn.Config(
            application(console, port, token),
            log_level="warning",
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=5,
        )
        console.index.runs(console.children.is_running)  # the first page then finds the runs already read
        opened(f"http://{LOCAL}:{port}/?{TOKEN}={token}")
        try:
            uvicorn.Server(config).run(sockets=[listener])
        finally:
            console.children.end()

"""What the pages of one console have in common: templates, sent forms, and the stream for what goes on."""

import asyncio
import contextlib
import re
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import cast

from jinja2 import Environment
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse

from devhost.comparison import comparison
from devhost.console.children import Child, Children, start_run
from devhost.console.conversation import waiting_of
from devhost.console.evaluations import Evaluated
from devhost.console.folder import RunFolder
from devhost.console.listing import Index, read_run
from devhost.console.readers import Kept, RunReader
from devhost.console.setup import Setup, Values, is_name
from devhost.errors import ConsoleError, TraceError, UnknownRunError
from devhost.evaluation import report
from devhost.flow import pages
from devhost.golang import well_formed
from devhost.page.page import page_environment

HERE = Path(__file__).parent
TEMPLATES, STATIC = HERE / "templates", HERE / "static"
COMPARISON, EVALUATION, FLOW = (Path(str(each.__file__)).parent for each in (comparison, report, pages))


def _environment() -> Environment:
    environment = page_environment(TEMPLATES, COMPARISON, EVALUATION, FLOW)
    environment.globals.update(costs=report.costs, mark=report.mark, share=report.share, page_of=_page_of)
    return environment


def _page_of(trace: str) -> str:
    """The address of the run whose trace it is; empty for one that is elsewhere, or gone."""
    file = Path(trace)
    return f"/runs/{file.stem}" if file.is_file() and is_name(file.stem) else ""


def style_sheet() -> str:
    """What the console shares with reports, then its frame, then every other style sheet of its own."""
    shared = page_environment().get_template("shared.css.j2").render()
    frame = STATIC / "console.css"
    others = sorted(file for file in STATIC.glob("*.css") if file != frame)
    files = (COMPARISON / "versus.css", EVALUATION / "evaluation.css", frame, *others)
    return "\n".join([shared, *(file.read_text(encoding="utf-8") for file in files)])


@dataclass(frozen=True)
class Console:
    folder: RunFolder
    plugin: Path | None = None
    """The strategy plugin; None for the nearest one."""
    children: Children = field(default_factory=Children)
    environment: Environment = field(default_factory=_environment)
    readers: Kept[Path, RunReader] = field(default_factory=lambda: Kept(RunReader))
    evaluations: Kept[Path, Evaluated] = field(default_factory=lambda: Kept(Evaluated))
    asked: dict[str, Values] = field(default_factory=dict)
    """What each evaluation was started with, by the name of its child."""
    ending: threading.Event = field(default_factory=threading.Event)
    """Set when the console ends; streams of events have no end of their own."""

    @cached_property
    def index(self) -> Index:
        return Index(self.folder, self.children.is_running)

    def render(self, template: str, **values: object) -> str:
        """Without halves of surrogate pairs, which traces and scripts can hold, and UTF-8 cannot."""
        return well_formed(self.environment.get_template(template).render(**values))

    def page(self, template: str, status: int = 200, **values: object) -> HTMLResponse:
        return HTMLResponse(self.render(template, **values), status)

    def macro(self, template: str, name: str) -> Callable[..., str]:
        return cast("Callable[..., str]", getattr(self.environment.get_template(template).module, name))

    def title(self, name: str) -> str:
        """What a person calls the run: its first question."""
        return read_run(self.folder, name).title

    def start(self, setup: Setup, *lines: str) -> str:
        """The name of the run that begins. `lines`: what its process is told at once."""
        return start_run(self.folder, self.start_child, setup, *lines)

    def start_child(self, name: str, arguments: Sequence[str], output: Path) -> Child:
        """If too many runs go on, the conversation ends in which nothing was asked for the longest time."""
        return self.children.start(name, arguments, output, self._only_waits)

    def _only_waits(self, name: str) -> bool:
        """Whether a run waits for nothing but a question."""
        with contextlib.suppress(ConsoleError, TraceError):  # an evaluation has no trace
            seen = self.readers.of(self.folder.trace(name)).read()
            return waiting_of(self.folder, name, self.children.of(name), seen).state.word == "question"
        return False


def console_of(request: Request) -> Console:
    return cast("Console", request.app.state.console)


type Posted = Callable[[Request, Mapping[str, str]], Response]


SEVERAL = frozenset({"tools", "case", "column", "run"})
"""The names under which a form may send several values: they are lines then."""


def posted(answer: Posted) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint for a form: `answer` gets its texts (the last one of a name), and may take its time."""

    async def endpoint(request: Request) -> Response:
        given: dict[str, str] = {}
        for name, value in (await request.form()).multi_items():
            if isinstance(value, str):
                given[name] = f"{given[name]}\n{value}" if name in given and name in SEVERAL else value
        return await run_in_threadpool(answer, request, given)

    return endpoint


# Parts of a page that stay true while something goes on: Server-Sent Events with HTML, which htmx morphs in.

LEAST_SECONDS = 0.15
"""Between two looks."""
SHARE = 4
"""A part that took a second to render is rendered again after so many, so that a long run leaves time for itself."""
_TAG = re.compile(r"<(\w+)")


class Told:
    """What one browser has got: a piece that it has already is sent as an empty element with the same id."""

    def __init__(self) -> None:
        self._pieces: dict[str, str] = {}

    def piece(self, name: str, html: str) -> Markup:
        """`html`: one element with the name as its id. Blanks around it would be matched with those around others."""
        html = html.strip()
        if self._pieces.get(name) == html:
            tag = cast("re.Match[str]", _TAG.match(html))[1]
            return Markup('<{} id="{}" data-same></{}>').format(Markup(tag), name, Markup(tag))  # noqa: S704 - rendered
        self._pieces[name] = html
        return Markup(html)  # noqa: S704 - rendered


@dataclass(frozen=True)
class Parts:
    html: Mapping[str, str]
    """By the name of the event with which a part is sent, if it is another one than before."""
    goes_on: bool = True
    """Whether they may still change."""


def live(console: Console, look: Callable[[Told], Parts], version: Callable[[], object]) -> StreamingResponse:
    """`version`: cheap to ask for; `look` is called only if it is another one than before."""
    return StreamingResponse(_events(console.ending, look, version), media_type="text/event-stream")


async def _events(
    ending: threading.Event, look: Callable[[Told], Parts], version: Callable[[], object]
) -> AsyncIterator[str]:
    told, seen = Told(), object()
    sent: dict[str, str] = {}
    yield "retry: 1000\n\n"
    while not ending.is_set():
        began = time.monotonic()
        try:
            current = await run_in_threadpool(version)
            parts = await run_in_threadpool(look, told) if current != seen else None
        except UnknownRunError:  # a run was deleted while its page was open
            yield event("end", "")
            return
        seen = current
        if parts:
            for name, html in parts.html.items():
                if sent.get(name) != html:
                    sent[name] = html
                    yield event(name, html)
            if not parts.goes_on:
                yield event("end", "")
                return
        await asyncio.sleep(max(LEAST_SECONDS, SHARE * (time.monotonic() - began)))


def event(name: str, text: str) -> str:
    """As it is sent: each line of the text is a line of data. A carriage return ends a line, too."""
    data = "".join(f"data: {line}\n" for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    return f"event: {name}\n{data}\n"


def changed_at(*files: Path) -> tuple[tuple[int, int], ...]:
    """Time and size of each; another value whenever one of them has changed."""
    return tuple(_stamp(file) for file in files)


def _stamp(file: Path) -> tuple[int, int]:
    try:
        status = file.stat()
    except OSError:
        return (0, -1)
    return (status.st_mtime_ns, status.st_size)

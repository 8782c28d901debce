"""What the answers of one console have in common."""

import contextlib
import secrets
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import cast

from starlette.requests import Request
from starlette.responses import HTMLResponse

from devhost.console.asking import waiting_of
from devhost.console.children import Child, Children, start_run
from devhost.console.listing import Index
from devhost.console.live import Readers
from devhost.console.once import Once
from devhost.console.pages.render import Pages
from devhost.console.runs import RunFolder, Setup
from devhost.console.suites import Evaluations
from devhost.errors import ConsoleError, TraceError

KEY = "key"
"""The field of a form that starts a run: each page has another value in it."""


@dataclass(frozen=True)
class Console:
    folder: RunFolder
    plugin: Path | None = None
    """The strategy plugin; None for the nearest one."""
    children: Children = field(default_factory=Children)
    once: Once = field(default_factory=Once)
    pages: Pages = field(default_factory=Pages)
    readers: Readers = field(default_factory=Readers)
    evaluations: Evaluations = field(default_factory=Evaluations)
    began: float = field(default_factory=time.time)
    """In seconds since 1970."""
    ending: threading.Event = field(default_factory=threading.Event)
    """Set when the console ends; streams of events have no end of their own."""

    @cached_property
    def index(self) -> Index:
        return Index(self.folder.path, self.children.is_running)

    def page(self, template: str, status: int = 200, **values: object) -> HTMLResponse:
        """`key`: of the page, for its form."""
        return HTMLResponse(self.pages.render(template, key=secrets.token_hex(8), **values), status)

    def start(self, key: str, setup: Setup, *lines: str) -> str:
        """The name of the run that begins, or that has just begun from the form with this key."""
        return self.once.name(key, lambda: start_run(self.folder, self.start_child, setup, *lines))

    def start_child(self, name: str, arguments: Sequence[str], output: Path) -> Child:
        """If too many runs go on, the conversation ends in which nothing was asked for the longest time."""
        return self.children.start(name, arguments, output, self._only_waits)

    def _only_waits(self, name: str) -> bool:
        """Whether a run waits for nothing but a question."""
        with contextlib.suppress(ConsoleError, TraceError):  # an evaluation has no trace
            turns = self.readers.of(self.folder.trace(name)).read().runs
            return waiting_of(self.folder, name, self.children.of(name), turns).state.word == "question"
        return False


def console_of(request: Request) -> Console:
    return cast("Console", request.app.state.console)


async def typed(request: Request) -> dict[str, str]:
    """The texts of a form; of fields with the same name, the last one."""
    return {name: value for name, value in (await request.form()).multi_items() if isinstance(value, str)}

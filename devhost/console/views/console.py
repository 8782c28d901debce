"""What the answers of one console have in common."""

import threading
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import cast

from starlette.requests import Request
from starlette.responses import HTMLResponse

from devhost.console.children.children import Children
from devhost.console.listing.index import Index
from devhost.console.live.readers import Readers
from devhost.console.pages.render import Pages
from devhost.console.runs.folder import RunFolder
from devhost.console.suites.evaluated import Evaluations


@dataclass(frozen=True)
class Console:
    folder: RunFolder
    plugin: Path | None = None
    """The strategy plugin; None for the nearest one."""
    children: Children = field(default_factory=Children)
    pages: Pages = field(default_factory=Pages)
    readers: Readers = field(default_factory=Readers)
    evaluations: Evaluations = field(default_factory=Evaluations)
    ending: threading.Event = field(default_factory=threading.Event)
    """Set when the console ends; streams of events have no end of their own."""

    @cached_property
    def index(self) -> Index:
        return Index(self.folder.path, self.children.is_running)

    def page(self, template: str, status: int = 200, **values: object) -> HTMLResponse:
        return HTMLResponse(self.pages.render(template, **values), status)


def console_of(request: Request) -> Console:
    return cast("Console", request.app.state.console)

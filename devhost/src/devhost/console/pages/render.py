"""Renders the console's templates, whole pages and the pieces that Server-Sent Events update."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from devhost.comparison import comparison
from devhost.evaluation.reports import reports
from devhost.golang import well_formed
from devhost.page.page import page_environment

HERE = Path(__file__).parent
TEMPLATES, STATIC = HERE / "templates", HERE / "static"
COMPARISON, EVALUATION = Path(comparison.__file__).parent, Path(reports.__file__).parent


class Pages:
    def __init__(self) -> None:
        self.environment = page_environment(TEMPLATES, COMPARISON, EVALUATION)
        self.environment.filters.update(is_part=comparison.is_part)
        self.environment.globals.update(costs=reports.costs, mark=reports.mark, share=reports.share)

    def render(self, template: str, **values: object) -> str:
        """Without halves of surrogate pairs, which traces and scripts can hold, and UTF-8 cannot."""
        return well_formed(self.environment.get_template(template).render(**values))


def style_sheet() -> str:
    """What the console shares with reports, then its frame, then every other style sheet of its own."""
    shared = page_environment().get_template("shared.css.j2").render()
    frame = STATIC / "console.css"
    others = sorted(file for file in STATIC.glob("*.css") if file != frame)
    files = (COMPARISON / "versus.css", EVALUATION / "evaluation.css", frame, *others)
    return "\n".join([shared, *(file.read_text(encoding="utf-8") for file in files)])


# A part of a page that stays true while something goes on: Server-Sent Events with HTML.

SECONDS = 0.3
"""Between two looks."""


@dataclass(frozen=True)
class Part:
    html: str
    goes_on: bool
    """Whether it may still change."""
    pieces: Mapping[str, str] = field(default_factory=dict)
    """HTML by the id of an element in the part, which the part leaves empty."""


type Look = Callable[[], Part]


def live_part(look: Look, version: Callable[[], object], ending: threading.Event) -> StreamingResponse:
    """`ending`: of the console; `version`: cheap to ask for; `look` is called only if it is another one than before."""
    return StreamingResponse(_events(look, version, ending), media_type="text/event-stream")


async def _events(look: Look, version: Callable[[], object], ending: threading.Event) -> AsyncIterator[str]:
    seen: object = None
    sent = ""
    known: Mapping[str, str] = {}
    while not ending.is_set():
        current = await run_in_threadpool(version)
        if current != seen:
            seen = current
            part = await run_in_threadpool(look)
            if part.html != sent:
                sent = part.html
                yield event("part", sent)
            if pieces := {name: html for name, html in part.pieces.items() if known.get(name) != html}:
                yield event("pieces", json.dumps(pieces, ensure_ascii=False))
            known = part.pieces
            if not part.goes_on:
                yield event("end", "")
                return
        await asyncio.sleep(SECONDS)


def event(name: str, text: str) -> str:
    """As it is sent: each line of the text is a line of data. A carriage return ends a line, too."""
    data = "".join(f"data: {line}\n" for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    return f"event: {name}\n{data}\n"

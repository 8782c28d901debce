"""A part of a page that stays true while something goes on: Server-Sent Events with HTML.

In: a function that looks at files. Out: an event `part` whenever the HTML is another one, and at last an event `end`.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

SECONDS = 0.3
"""Between two looks."""


@dataclass(frozen=True)
class Part:
    html: str
    goes_on: bool
    """Whether it may still change."""


type Look = Callable[[], Part]


def live_part(look: Look, version: Callable[[], object], ending: threading.Event) -> StreamingResponse:
    """`ending`: of the console; `version`: cheap to ask for; `look` is called only if it is another one than before."""
    return StreamingResponse(_events(look, version, ending), media_type="text/event-stream")


async def _events(look: Look, version: Callable[[], object], ending: threading.Event) -> AsyncIterator[str]:
    seen: object = None
    sent = ""
    while not ending.is_set():
        current = await run_in_threadpool(version)
        if current != seen:
            seen = current
            part = await run_in_threadpool(look)
            if part.html != sent:
                sent = part.html
                yield event("part", sent)
            if not part.goes_on:
                yield event("end", "")
                return
        await asyncio.sleep(SECONDS)


def event(name: str, text: str) -> str:
    """As it is sent: each line of the text is a line of data. A carriage return ends a line, too."""
    data = "".join(f"data: {line}\n" for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    return f"event: {name}\n{data}\n"

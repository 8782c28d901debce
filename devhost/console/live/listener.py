"""What one browser is told of the run that it watches: Server-Sent Events."""

import json
from collections.abc import Iterator, Mapping

from devhost.console.live.pieces import Changes, Rendering
from devhost.console.live.readers import RunReader, Seen
from devhost.console.pages.render import Pages
from devhost.errors import TraceError
from devhost.protocol.golang.values import well_formed


class Listener:
    """One browser that watches one run."""

    def __init__(self, name: str, reader: RunReader, pages: Pages) -> None:
        self._name = name
        self._pages = pages
        self._reader = reader
        self._rendering = Rendering(pages.environment)
        self._changes = Changes()
        self._seen: Seen | None = None
        self._problem = self._head = ""

    def news(self) -> list[str]:
        """Events of what has changed since it was asked before; at first of everything."""
        try:
            seen = self._reader.read()
        except TraceError as error:
            return self._new_problem(str(error))
        if seen is self._seen:
            return self._new_problem("")
        if self._seen is not None and self._seen.trace is not None and seen.trace is None:
            # A run that writes over it empties it first.
            file = self._reader.file
            return [] if file.exists() else self._new_problem(f"{file} is gone: this page shows what was in it.")
        began = self._new_trace(seen) if _header(seen) is not _header(self._seen) else []
        self._seen = seen
        return [*self._new_problem(""), *began, *self._new_head(seen), *self._new_sections(seen)]

    def _new_trace(self, seen: Seen) -> list[str]:
        """When it began. A run may have written over the trace that the browser shows: nothing of that one stays."""
        self._rendering = Rendering(self._pages.environment)
        self._changes = Changes()
        return [] if seen.trace is None else [_event("trace", {"began": seen.trace.header.started.isoformat()})]

    def _new_problem(self, sentence: str) -> list[str]:
        """An empty one if there is none any more."""
        if sentence == self._problem:
            return []
        self._problem = sentence
        return [_event("problem", {"sentence": sentence})]

    def _new_head(self, seen: Seen) -> Iterator[str]:
        head = self._pages.render("run_head.html.j2", name=self._name, trace=seen.trace, is_asked=bool(seen.runs))
        if seen.trace is not None and head != self._head:
            self._head = head
            yield _event("head", {"html": head})

    def _new_sections(self, seen: Seen) -> Iterator[str]:
        for shown in seen.runs:
            section = self._rendering.section(shown)
            is_new = not self._changes.knows(section.number)
            change = self._changes.of(section)
            if change is not None:
                frame = self._pages.render("run_frame.html.j2", shown=shown, pieces={}) if is_new else ""
                yield _event("section", {**change, "frame": frame})


def _header(seen: Seen | None) -> object:
    return None if seen is None or seen.trace is None else seen.trace.header


def _event(name: str, data: Mapping[str, object]) -> str:
    return f"event: {name}\ndata: {well_formed(json.dumps(data, ensure_ascii=False))}\n\n"

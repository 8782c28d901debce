"""Traces of runs that tests make themselves."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from devhost.text import Secrets
from devhost.trace.lines import TraceWriter

FACTS = {
    "command": "run",
    "example": "test",
    "description": "a test",
    "strategy": "puppet",
    "transport": "stdio",
    "model": {
        "name": "scripted-gpt-5",
        "provider": "devhost/scripted/scripted",
        "scripted": True,
        "notice": "scripted",
    },
    "query": "?",
}


def remove_files(shown: str) -> None:
    """The picture that a run of the toolbox leaves where its output says."""
    (path,) = [Path(word) for word in shown.split() if word.endswith(".png") and word.startswith("/")]
    path.unlink()
    path.parent.rmdir()


def as_replayed(shown: str) -> str:
    """What a run showed, but for the plugins that were starting, which no replay has."""
    return "".join(line for line in shown.splitlines(keepends=True) if not line.startswith("starting "))


@contextmanager
def tracing(file: Path, *secrets: str, **facts: object) -> Iterator[TraceWriter]:
    with TraceWriter(file, Secrets(secrets), {**FACTS, **facts}) as writer:
        yield writer

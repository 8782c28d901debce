"""The recording of Dify's own Agent node: `node-golden.jsonl`, line by line."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from support.recordings import NODE

type Line = dict[str, Any]


def _read() -> Iterator[tuple[int, Line]]:
    for number, text in enumerate(NODE.read_text(encoding="utf-8").splitlines(), start=1):
        yield number, json.loads(text)


LINES = dict(_read())
"""By their number in the file, from 1."""


def variables() -> dict[str, object]:
    """Of the recorded workflow, by `node.name`."""
    return dict(LINES[1]["variables"])


def of_kind(kind: str) -> list[Any]:
    """The lines of a kind, as parameters of a test that are named by their number."""
    return [pytest.param(line, id=f"line-{number}") for number, line in LINES.items() if line["kind"] == kind]

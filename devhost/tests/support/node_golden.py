"""The recording of Dify's own Agent node: `node-golden.jsonl`, line by line."""

import json
from typing import Any

import pytest

from support.recordings import NODE

type Line = dict[str, Any]

LINES: dict[int, Line] = dict(enumerate(map(json.loads, NODE.read_text(encoding="utf-8").splitlines()), start=1))
"""By their number in the file."""


def variables() -> dict[str, object]:
    """Of the recorded workflow, by `node.name`."""
    return dict(LINES[1]["variables"])


def of_kind(kind: str) -> list[Any]:
    """The lines of a kind, as parameters of a test that are named by their number."""
    return [pytest.param(line, id=f"line-{number}") for number, line in LINES.items() if line["kind"] == kind]

"""What was recorded of Dify itself: its plugin daemon (source of 2026-08-21) and its Agent node (API 1.17.0).

One decision a line; ``kind`` says what is decided.
"""

import json
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parents[1] / "fixtures" / "dify"
DAEMON = _FOLDER / "daemon-golden.jsonl"
NODE = _FOLDER / "node-golden.jsonl"
TOOL_VALUES = _FOLDER / "tool-values.jsonl"
"""Of Dify 1.16.1: what becomes of the parameters of tools."""


def recorded(recording: Path, kind: str) -> list[dict[str, Any]]:
    """The lines of a kind, in their order."""
    lines = [json.loads(line) for line in recording.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line["kind"] == kind]

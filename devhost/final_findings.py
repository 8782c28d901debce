"""What can only be said of a node's outputs once the run has ended.

In: the outputs, and the variables that the strategy's output_schema declares. Out: findings.
"""

import json
import re
from collections.abc import Iterator, Sequence

from devhost.agent_log import LogEntry
from devhost.node_outputs import Finding, NodeOutputs

STORED_BYTES = 1_024_000
STORED_CHARACTERS = 100_000
STORED_ITEMS = 1000
"""What Dify keeps of a node's outputs, of one string and of one list; the rest is cut off."""


def final_findings(outputs: NodeOutputs, declared: frozenset[str]) -> Iterator[Finding]:
    for entry in _everywhere(outputs.logs):
        if entry.status == "start":
            yield Finding("log-left-open", f"log {entry.label!r} was never finished: it shows as running for ever")
    if leaves_thought_open(outputs.text):
        yield Finding("think-left-open", "a <think> is never closed: in the chat it swallows all that follows")
    for name in outputs.variables:
        if name not in declared and name != "usage":
            yield Finding(
                "variable-not-declared",
                f"variable {name!r} is not in the strategy's output_schema: no other node can choose it",
            )
    for excess in _excesses(outputs):
        yield Finding("outputs-truncated", f"{excess}: Dify stores it cut off")


def leaves_thought_open(text: str) -> bool:
    """Runs of opening tags are one block to the chat, and so are runs of closing ones; blocks nest."""
    depth = 0
    for tags in re.finditer(r"(?:<think>\s*)+|(?:\s*</think>)+", text):
        depth = depth + 1 if tags.group().startswith("<think>") else max(depth - 1, 0)
    return depth > 0


def _everywhere(entries: Sequence[LogEntry]) -> Iterator[LogEntry]:
    for entry in entries:
        yield entry
        yield from _everywhere(entry.children)


def _excesses(outputs: NodeOutputs) -> Iterator[str]:
    values = {"text": outputs.text, "json": outputs.json, "files": outputs.files, **outputs.variables}
    for name, value in values.items():
        if isinstance(value, str) and len(value) > STORED_CHARACTERS:
            yield f"{name} has {len(value):,} characters, more than {STORED_CHARACTERS:,}"
        if isinstance(value, list) and len(value) > STORED_ITEMS:
            yield f"{name} has {len(value):,} items, more than {STORED_ITEMS:,}"
    size = len(json.dumps(values, ensure_ascii=False).encode(errors="replace"))
    if size > STORED_BYTES:
        yield f"the outputs have {size:,} bytes, more than {STORED_BYTES:,}"

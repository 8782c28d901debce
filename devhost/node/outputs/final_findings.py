"""Findings that need the whole run: they are known only at its end.

In: the outputs, the text as it was said, the variables that the strategy's output_schema declares, and those that the
conversation keeps. Out: findings.
"""

import json
import re
import sys
from collections.abc import Iterator, Sequence

from devhost.node.messages.text import NodeText
from devhost.node.outputs.log import LogEntry
from devhost.node.outputs.outputs import Finding, NodeOutputs

LEFT_OPEN = frozenset({"log-left-open", "think-left-open", "blob-left-open"})
"""Findings about what a strategy began and did not finish."""
STORED_BYTES = 1_024_000
STORED_CHARACTERS = 100_000
STORED_ITEMS = 1000
"""What Dify keeps of a node's outputs, of one string and of one list; the rest is cut off."""
CONVERSATION_BYTES = 204_800
"""MAX_VARIABLE_SIZE: of one conversation variable, as Python counts the memory of a value."""


def final_findings(
    outputs: NodeOutputs, text: NodeText, declared: frozenset[str], kept: frozenset[str]
) -> Iterator[Finding]:
    for entry in _everywhere(outputs.logs):
        if entry.status == "start":
            yield Finding("log-left-open", f"log {entry.label!r} was not finished: Dify shows it as running")
    yield from _of_thoughts(text)
    for name in outputs.variables:
        if name not in declared and name != "usage":
            yield Finding(
                "variable-not-declared",
                f"variable {name!r} is not in the strategy's output_schema: no other node can choose it",
            )
    yield from _of_storing(outputs, kept)


def _of_thoughts(text: NodeText) -> Iterator[Finding]:
    if leaves_thought_open(text.said):
        yield Finding(
            "think-left-open",
            "a <think> is never closed (a quoted one counts too): in the chat it swallows all that follows, "
            "and newer Dify puts a </think> at the end",
        )
    for by in dict.fromkeys(text.repairs):
        yield Finding("think-closed-early", f"a <think> was open when {by} came: newer Dify puts a </think> before it")


def _of_storing(outputs: NodeOutputs, kept: frozenset[str]) -> Iterator[Finding]:
    for excess in _excesses(outputs):
        yield Finding("outputs-truncated", f"{excess}: Dify stores it cut off")
    for name, value in outputs.by_name().items():
        if _has_nul(value):
            yield Finding("nul-character", f"{name} holds a NUL character, which Dify's database refuses")
    for name in sorted(kept & outputs.variables.keys()):
        size = sys.getsizeof(outputs.variables[name])
        if size > CONVERSATION_BYTES:
            yield Finding(
                "conversation-variable-too-large",
                f"variable {name!r} has {size:,} bytes in memory, more than {CONVERSATION_BYTES:,}: "
                "every later message of the conversation fails",
            )


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


def _has_nul(value: object) -> bool:
    match value:
        case str():
            return "\0" in value
        case dict():
            return any(_has_nul(part) for item in value.items() for part in item)
        case list():
            return any(map(_has_nul, value))
        case _:
            return False

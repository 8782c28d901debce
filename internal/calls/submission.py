"""An answer that is handed over by a call may not hold a known secret.

In: the virtual tool that takes the answer. Out: the same tool with a stricter check.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from internal.schema.check import Problem
from internal.text.redaction import KnownSecrets
from internal.tools.toolbox import Tool

_HOLDS_SECRET = "it holds a secret value, which an answer must not repeat; leave it out"  # noqa: S105 - a sentence


def refusing_secrets(tool: Tool, secrets: KnownSecrets) -> Tool:
    """The tool that takes the answer; one that holds a known secret is refused like one that does not fit."""

    def more(value: Any) -> Iterator[Problem]:  # noqa: ANN401 - JSON
        if secrets.holds(value):
            yield Problem(_place_of_secret(value, secrets), f": {_HOLDS_SECRET}")

    if tool.virtual_schema is None:
        return tool
    check = tool.virtual_schema.check.stricter(more)
    return replace(tool, virtual_schema=replace(tool.virtual_schema, check=check))


def _place_of_secret(value: object, secrets: KnownSecrets) -> tuple[str | int, ...]:
    """The way to the innermost value that holds one; not into the names of an object."""
    items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for part, item in items:
        if secrets.holds(item) and not secrets.holds(part):
            return (part, *_place_of_secret(item, secrets))
    return ()

"""The outputs of a node, and the findings about them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from devhost.node.outputs.log import LogEntry
from devhost.protocol.wire import JsonObject


@dataclass(frozen=True)
class Finding:
    """A rule of the host that the run broke, whether it failed by it or not."""

    rule: str
    sentence: str


@dataclass(frozen=True)
class IconLookups:
    """Calls by which Dify looks for the icons of the log's rows; each takes time."""

    list_plugins: int = 0
    list_builtin_tools: int = 0

    @classmethod
    def of(cls, rows: int) -> "IconLookups":
        """`rows`: log messages whose metadata name a provider. Two look-ups of plugins come with every run."""
        return cls(rows + 2, rows)


@dataclass(frozen=True)
class NodeOutputs:
    """The outputs of an Agent node, by the names that other nodes refer to, and its log tree."""

    text: str
    """As newer Dify stores it: with every `<think>` closed."""
    files: list[JsonObject]
    json: list[Any]
    usage: Any
    variables: JsonObject
    logs: list[LogEntry]
    dropped_retriever_resources: int
    workflow_totals: JsonObject = field(default_factory=dict)
    """What Dify keeps of `execution_metadata` for the sums of the whole workflow."""
    icon_lookups: IconLookups = IconLookups()

    def json_of_strategy(self) -> list[Any]:
        """The strategy's objects: without log entries, which come first, and without the placeholder for no JSON.

        An object that repeats the variables is left out, too: they are shown by themselves.
        """
        not_shown: tuple[JsonObject, ...] = ({"data": []}, {"variables": self.variables})
        return [value for value in self.json[_count(self.logs) :] if value not in not_shown]

    @property
    def pending_calls(self) -> list[Any]:
        """The calls that wait for the user's answer, by the name that strategies give to the variable."""
        calls = self.variables.get("pending_calls")
        return calls if isinstance(calls, list) else []

    def by_name(self) -> JsonObject:
        """As other nodes refer to them."""
        named = {"text": self.text, "usage": self.usage, "files": self.files, "json": self.json}
        return {**named, **self.variables}


def _count(entries: Sequence[LogEntry]) -> int:
    return sum(1 + _count(entry.children) for entry in entries)

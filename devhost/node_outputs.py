"""What a node leaves behind, and what is to be said against it."""

from dataclasses import dataclass
from typing import Any

from devhost.agent_log import LogEntry
from devhost.wire import JsonObject


@dataclass(frozen=True)
class Finding:
    """A rule of the host that the run broke, whether it failed by it or not."""

    rule: str
    sentence: str


@dataclass(frozen=True)
class NodeOutputs:
    text: str
    files: list[JsonObject]
    json: list[Any]
    usage: Any
    variables: JsonObject
    logs: list[LogEntry]
    dropped_retriever_resources: int

"""The Agent node's outputs, folded from a strategy's messages by the host's rules.

In: messages as they come. Out: `NodeOutputs` at any time, and the rules of the host that the run broke, as findings.
What fails a node in Dify raises `NodeFailedError` here.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from devhost.agent_log import AgentLog, LogEntry
from devhost.errors import NodeFailedError
from devhost.file_messages import FileMessages
from devhost.limits import HostLimits
from devhost.messages import Message, read_message
from devhost.node_usage import read_usage
from devhost.tool_files import ToolFileStore
from devhost.wire import JsonObject

RESERVED_VARIABLES = frozenset({"text", "json", "files"})


@dataclass(frozen=True)
class Finding:
    """A rule of the host that the run broke without failing by it."""

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


class OutputsFold:
    def __init__(self, files: ToolFileStore, limits: HostLimits) -> None:
        self._store = files
        self._file_messages = FileMessages(files, limits, self._dropped)
        self._text: list[str] = []
        self._files: list[JsonObject] = []
        self._json: list[Any] = []
        self._usage = read_usage({})
        self._variables: JsonObject = {}
        self._log = AgentLog()
        self._dropped_resources = 0
        self._findings: list[Finding] = []

    def add(self, data: JsonObject) -> Iterator[Message]:
        """Folds one message in; yields what it is to whoever watches, links instead of bytes."""
        for message in self._file_messages.transform(read_message(data)):
            self._add(message)
            yield message

    def outputs(self) -> NodeOutputs:
        logs = [entry.stored() for entry in self._log.entries.values()]
        return NodeOutputs(
            text="".join(self._text),
            files=list(self._files),
            json=[*logs, *(self._json or [{"data": []}])],
            usage=self._variables.get("usage", dict(self._usage)),
            variables=dict(self._variables),
            logs=self._log.roots(),
            dropped_retriever_resources=self._dropped_resources,
        )

    def findings(self) -> list[Finding]:
        """What was broken on the way, and what is wrong about the end."""
        found = list(self._findings)
        found += [
            Finding("log-left-open", f"log {entry.label!r} was never finished: it shows as running for ever")
            for entry in self._log.unfinished()
        ]
        if leaves_thought_open("".join(self._text)):
            found.append(
                Finding("think-left-open", "a <think> is never closed: in the chat it swallows all that follows")
            )
        return found

    def _add(self, message: Message) -> None:
        body = message.body
        match message.type:
            case "text":
                self._text.append(message.text)
            case "link":
                self._text.append(f"Link: {message.text}\n")
            case "image_link" | "binary_link":
                self._add_file(message)
            case "json":
                self._add_json(body["json_object"])
            case "variable":
                self._add_variable(body)
            case "log":
                self._add_log(body)
            case "retriever_resources":
                self._dropped_resources += len(body["retriever_resources"])

    def _add_file(self, message: Message) -> None:
        file = self._store.find(message.text, message.meta)
        if file is None:
            raise NodeFailedError(
                "file-link-without-tool-file",
                f"{message.type} {message.text!r} leads to no tool file; "
                "send a file of your own as a blob, and an image from elsewhere as an image message",
            )
        self._files.append(
            {
                "id": file.id,
                "type": file.kind,
                "transfer_method": "tool_file",
                "filename": file.filename,
                "extension": file.extension,
                "mime_type": file.mime_type,
                "size": file.size,
                "url": file.url,
                "path": str(file.path),
            }
        )

    def _add_json(self, value: object) -> None:
        """Every JSON message sets the usage anew: from its execution_metadata, or to nothing."""
        had_usage = self._usage["total_tokens"] > 0
        rest, metadata = value, None
        if isinstance(value, dict):
            rest = {key: item for key, item in value.items() if key != "execution_metadata"}
            metadata = value.get("execution_metadata")
        if metadata is not None and not isinstance(metadata, dict):
            raise NodeFailedError("usage-types", "execution_metadata must be an object")
        self._usage = read_usage(metadata or {})
        if had_usage and not metadata:
            self._findings.append(
                Finding(
                    "usage-reset", "a JSON message without execution_metadata came after the usage and reset it to zero"
                )
            )
        if rest:
            self._json.append(rest)

    def _add_variable(self, body: JsonObject) -> None:
        name, value = body["variable_name"], body.get("variable_value")
        if name in RESERVED_VARIABLES:
            raise NodeFailedError(
                "variable-name-reserved", f"a variable may not be called {name!r}: the node has that output"
            )
        if name == "usage":
            self._findings.append(
                Finding("variable-hides-usage", "a variable called 'usage' overwrites the node's usage")
            )
        if body.get("stream"):
            value = f"{self._variables.get(name, '')}{value}"
        self._variables[name] = value

    def _add_log(self, body: JsonObject) -> None:
        self._log.add(body)
        elapsed = (body.get("metadata") or {}).get("elapsed_time")
        if elapsed is not None and (isinstance(elapsed, bool) or not isinstance(elapsed, int | float)):
            self._findings.append(
                Finding(
                    "log-elapsed-time", f"log {body['label']!r} has elapsed_time {elapsed!r}: the panel breaks on it"
                )
            )

    def _dropped(self, message: Message) -> None:
        self._findings.append(Finding("file-message-dropped", f"Dify silently drops a {message.type} message"))


def leaves_thought_open(text: str) -> bool:
    """Runs of opening tags are one block to the chat, and so are runs of closing ones."""
    opened = [match.end() for match in re.finditer(r"(<think>\s*)+", text)]
    return bool(opened) and "</think>" not in text[opened[-1] :]

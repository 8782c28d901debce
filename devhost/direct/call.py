"""Calls one tool, and folds what it sends.

In: a plugin that runs and an `AskedTool`. Out: each message as Dify passes it on, while the tool works, and a
`ToolOutcome` at the end.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from devhost.direct.asked import AskedTool
from devhost.direct.output_schema import schema_findings
from devhost.errors import RunFailure
from devhost.host.backwards import BackwardsCalls
from devhost.node.messages.tool_files import ToolFileStore
from devhost.node.outputs.outputs import Finding
from devhost.node.outputs.run import RunError
from devhost.process.plugin_process import PluginProcess
from devhost.protocol.message_types import FILE_LINKS
from devhost.protocol.wire import JsonObject
from devhost.text.secrets import Secrets
from devhost.tools.tool import PluginTool, Surroundings, call_tool

type OnMessage = Callable[[JsonObject, float], None]
"""The message, and the seconds since the call began."""


@dataclass
class ToolOutcome:
    """What came of a call; the fields grow while the tool works."""

    messages: list[JsonObject] = field(default_factory=list)
    files: list[JsonObject] = field(default_factory=list)
    """Those of its messages, and those that it uploaded."""
    variables: JsonObject = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)
    """Lines on stdout and stderr that are not messages."""
    error: RunError | None = None
    elapsed_seconds: float = 0.0

    def report(self) -> dict[str, Any]:
        """As one JSON object, for programs."""
        return asdict(self)


def call_directly(
    plugin: PluginProcess, asked: AskedTool, calls: BackwardsCalls, files: ToolFileStore, on_message: OnMessage
) -> ToolOutcome:
    secrets = Secrets(asked.setup.secrets)
    outcome = ToolOutcome()
    fold = _Fold(outcome, files)
    tool = PluginTool(plugin, asked.offered, asked.setup, plugin.limits)
    began = time.monotonic()
    try:
        for sent in call_tool(tool, asked.parameters, Surroundings(calls.answer, files, plugin.limits, fold.found)):
            message = secrets.masked(sent)
            fold.add(message)
            on_message(message, time.monotonic() - began)
        outcome.findings += schema_findings(asked.offered.declared.output_schema, outcome.variables)
    except RunFailure as failure:
        error = secrets.masked(RunError.of(failure))
        outcome.error = replace(error, node=None)  # that is the Agent node's
    outcome.elapsed_seconds = round(time.monotonic() - began, 3)
    outcome.findings += calls.findings
    outcome.files += [file.output() for file in files.all()]
    return outcome


class _Fold:
    def __init__(self, outcome: ToolOutcome, files: ToolFileStore) -> None:
        self._outcome = outcome
        self._files = files

    def add(self, message: JsonObject) -> None:
        self._outcome.messages.append(message)
        body = message.get("message") or {}
        match message["type"]:
            case "variable":
                name, value = body["variable_name"], body.get("variable_value")
                if body.get("stream"):
                    value = f"{self._outcome.variables.get(name, '')}{value}"
                self._outcome.variables[name] = value
            case kind if kind in FILE_LINKS:
                self._check_link(body, message.get("meta") or {})

    def found(self, rule: str, sentence: str) -> None:
        self._outcome.findings.append(Finding(rule, sentence))

    def _check_link(self, body: JsonObject, meta: JsonObject) -> None:
        if self._files.find(str(body.get("text")), meta) is None:
            self.found("file-link-without-tool-file", f"{body.get('text')!r} has no tool file: Dify's Tool node fails")

"""The Agent node's outputs, folded from a strategy's messages by the host's rules.

In: messages as they come. Out: `NodeOutputs` at any time, and the rules of the host that the run broke, as findings.
What fails a node in Dify raises `NodeFailedError` here.
"""

from collections.abc import Iterator
from typing import Any

from devhost.errors import InvocationError, NodeFailedError, RunFailure
from devhost.limits import HostLimits
from devhost.node.messages.file_messages import FileMessages
from devhost.node.messages.message import Message, read_message
from devhost.node.messages.text import NodeText
from devhost.node.messages.tool_files import ToolFileStore
from devhost.node.outputs.final_findings import LEFT_OPEN, final_findings
from devhost.node.outputs.log import AgentLog
from devhost.node.outputs.outputs import Finding, IconLookups, NodeOutputs
from devhost.node.outputs.usage import WORKFLOW_TOTALS, no_usage, read_usage
from devhost.protocol.message_types import FILE_LINKS
from devhost.protocol.run_messages import agent_message
from devhost.protocol.wire import JsonObject


class OutputsFold:
    def __init__(
        self,
        files: ToolFileStore,
        limits: HostLimits,
        declared: frozenset[str] = frozenset(),
        *,
        kept: frozenset[str] = frozenset(),
        goes_on: bool = False,
    ) -> None:
        """`declared`: the variables in the strategy's output_schema; `kept`: those that the conversation keeps.

        `goes_on`: also after an error that fails the node.
        """
        self.failure: RunFailure | None = None
        """The first error that failed the node, if the fold goes on after errors."""
        self._declared = declared
        self._kept = kept
        self._goes_on = goes_on
        self._store = files
        self._file_messages = FileMessages(files, limits, self._found)
        self._text = NodeText()
        self._files: list[JsonObject] = []
        self._json: list[Any] = []
        self._usage = no_usage()
        self._workflow_totals: JsonObject = {}
        self._variables: JsonObject = {}
        self._log = AgentLog()
        self._dropped_resources = 0
        self._findings: list[Finding] = []

    def decoded(self, said: Any) -> JsonObject | None:  # noqa: ANN401 - any value that the plugin streamed
        """The message as the daemon passes it on, for `add`. Its error ends the run, unless the fold goes on."""
        try:
            return agent_message(said)
        except InvocationError as failure:
            self._failed("message-malformed", failure)
            return None

    def add(self, data: JsonObject) -> Iterator[Message]:
        """Folds one message in; yields the messages for the page, with links instead of bytes."""
        try:
            for message in self._file_messages.transform(read_message(data)):
                self._add(message)
                yield from self._text.take(message)
        except NodeFailedError as failure:
            self._failed(failure.rule, failure)

    def finish(self) -> Iterator[Message]:
        """The run is over; yields the rest for the page."""
        yield from self._text.finish()

    def outputs(self) -> NodeOutputs:
        logs = [entry.stored() for entry in self._log.entries.values()]
        return NodeOutputs(
            text=self._text.passed,
            files=list(self._files),
            json=[*logs, *(self._json or [{"data": []}])],
            usage=self._variables.get("usage", dict(self._usage)),
            variables=dict(self._variables),
            logs=self._log.roots(),
            dropped_retriever_resources=self._dropped_resources,
            workflow_totals=dict(self._workflow_totals),
            icon_lookups=IconLookups.of(self._log.rows_with_provider),
        )

    def findings(self, *, was_stopped: bool = False) -> list[Finding]:
        """The findings about single messages, then those about the finished outputs.

        A strategy that a person stopped could not finish what it had begun: that is not found.
        """
        unfinished = [
            Finding("blob-left-open", f"{name} is incomplete: a last chunk with end=true is missing")
            for name in self._file_messages.unfinished()
        ]
        final = final_findings(self.outputs(), self._text, self._declared, self._kept)
        found = [*self._findings, *unfinished, *final]
        return [finding for finding in found if not was_stopped or finding.rule not in LEFT_OPEN]

    def _add(self, message: Message) -> None:
        body = message.body
        match message.type:
            case kind if kind in FILE_LINKS:
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
                f"{message.type} {message.text!r} has no tool file; "
                "send a file of your own as a blob, and an image from elsewhere as an image message",
                shows=f"Tool file '{_sought(message)}' does not exist",
            )
        self._files.append(file.output())

    def _add_json(self, value: object) -> None:
        """Each JSON message replaces the usage: with its execution_metadata, or with nothing."""
        had_usage = self._usage["total_tokens"] > 0
        rest, metadata = value, None
        if isinstance(value, dict):
            rest = {key: item for key, item in value.items() if key != "execution_metadata"}
            metadata = value.get("execution_metadata")
        if metadata is not None and not isinstance(metadata, dict):
            raise NodeFailedError("usage-types", "execution_metadata must be an object")
        self._usage = read_usage(metadata or {}) if isinstance(value, dict) else no_usage()
        self._workflow_totals = {name: metadata[name] for name in WORKFLOW_TOTALS if metadata and name in metadata}
        if had_usage and metadata:
            self._found("usage-replaced", "a second execution_metadata replaced the first: Dify does not add them up")
        elif had_usage:
            self._found(
                "usage-reset", "a JSON message without execution_metadata came after the usage and reset it to zero"
            )
        if rest:
            self._json.append(rest)

    def _add_variable(self, body: JsonObject) -> None:
        name, value = body["variable_name"], body.get("variable_value")
        if name == "usage":
            self._found("variable-hides-usage", "a variable called 'usage' overwrites the node's usage")
        if body.get("stream"):
            value = f"{self._variables.get(name, '')}{value}"
        self._variables[name] = value

    def _add_log(self, body: JsonObject) -> None:
        self._log.add(body)
        elapsed = (body.get("metadata") or {}).get("elapsed_time")
        if elapsed is not None and (isinstance(elapsed, bool) or not isinstance(elapsed, int | float)):
            self._found(
                "log-elapsed-time", f"log {body['label']!r} has elapsed_time {elapsed!r}: the panel breaks on it"
            )

    def _failed(self, rule: str, failure: RunFailure) -> None:
        self._found(rule, str(failure))
        if not self._goes_on:
            raise failure
        self.failure = self.failure or failure

    def _found(self, rule: str, sentence: str) -> None:
        self._findings.append(Finding(rule, sentence))


def _sought(link: Message) -> str:
    """The id by which Dify looks for a link's file."""
    return str(link.meta.get("tool_file_id") or link.text.rpartition("/")[2].partition(".")[0])

"""The result of a run as a value and as JSON, and the error that the node shows."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import PurePath
from typing import Any, Literal, Self

from devhost.errors import (
    HostError,
    InvocationError,
    NodeFailedError,
    PriceLimitError,
    RunFailure,
    RunStoppedError,
    RunTimeoutError,
)
from devhost.golang import marshalled, remarshalled, well_formed
from devhost.models.backend import ModelDescription
from devhost.node.outputs.outputs import Finding, NodeOutputs, spent
from devhost.protocol.wire import JsonObject
from devhost.words import counted

REQUEST_ID = "0123456789"
"""The id that replaces the one that Dify gives each request."""
INVOKE_ERROR = "PluginInvokeError"
"""The error type in which the daemon wraps a plugin's exceptions."""
MODEL_ERRORS = frozenset(
    f"Invoke{kind}Error" for kind in ("Authorization", "BadRequest", "Connection", "RateLimit", "ServerUnavailable")
)
"""Errors that Dify recognizes by their class names. Dify shows only the message of such an error."""


@dataclass(frozen=True)
class NodeError:
    """The error that a node shows."""

    shows: str
    type: str = "WorkflowNodeError"
    """The type of the error; empty for an error that the plugin or its caller caused."""
    inputs_kept: bool = False


def plugin_error(text: str) -> "tuple[str, RunError] | None":
    """Extracts a plugin's error from the text of a failed call. Returns None if the text does not contain one.

    The first part of the result is the text before the error, such as `invoke tool failed: `.
    """
    before, found, wrapped = text.partition(f"{INVOKE_ERROR}: ")
    try:
        said: Any = json.JSONDecoder().raw_decode(wrapped)[0] if found else None
        if said["error_type"] == INVOKE_ERROR:  # an error from a model is wrapped twice
            said = json.loads(said["message"])
        traceback = str((said.get("args") or {}).get("traceback") or "")
        return before, RunError(str(said["error_type"]), str(said["message"]), traceback)
    except (ValueError, LookupError, TypeError, AttributeError):
        return None


def error_line(text: str) -> str:
    """Returns a plugin's error in a line, such as `KeyError: 'word', tools/search.py:31`.

    A text without a plugin's error is returned unchanged.
    """
    found = plugin_error(text)
    if found is None:
        return text
    return found[1].line


ANSWERED = "answered"
STOPPED: Mapping[str, str] = {
    "iteration_limit": "stopped at the limit of rounds",
    "time_limit": "stopped at the limit of time",
    "token_limit": "stopped at the limit of tokens",
    "call_limit": "stopped at the limit of tool calls",
    "size_limit": "stopped at the limit of size",
    "repeated_calls": "stopped because the model repeated its calls",
    "unparsed_call": "stopped because the model wrote its calls as text",
    "approval_required": "waits for the user's approval",
    "model_failed": "stopped because the model failed",
    "length": "cut at the model's limit of output",
    "content_filter": "cut by the provider's content filter",
    "empty": "ended without an answer",
    "answer_invalid": "ended without a valid answer",
}
"""The meaning of each stop reason of this repository's strategies. docs/outputs.md lists the reasons."""


@dataclass(frozen=True)
class RunError:
    """The error that ended a run."""

    kind: str
    """The plugin's own error type, the rule that failed the node, or the limit that ended the run."""
    message: str
    traceback: str | None = None
    node: NodeError | None = None
    """The error that the node shows; None if the run was stopped from outside or did not begin."""

    @property
    def place(self) -> str:
        """The last line of the plugin's own code in the traceback, as `FOLDER/FILE:LINE`; empty if there is none."""
        frames = re.findall(r'File "([^"]+)", line (\d+)', self.traceback or "")
        own = [(file, line) for file, line in frames if not re.search(r"/(site-packages|lib/python[\d.]+)/|^<", file)]
        if not own:
            return ""
        return f"{'/'.join(PurePath(own[-1][0]).parts[-2:])}:{own[-1][1]}"

    @property
    def line(self) -> str:
        """The error in one line, such as `KeyError: 'word', tools/search.py:31`.

        If the message is a sentence, the place follows in parentheses.
        """
        message = self.message
        if found := plugin_error(message):  # a strategy may pass on the error of a call unchanged
            before, raised = found
            message = f"{before}{raised.kind}: {raised.message}"
        if message.endswith("."):
            place = f" ({self.place})"
        else:
            place = f", {self.place}"
        return f"{self.kind}: {message}{place if self.place else ''}"

    @property
    def ending(self) -> "RunEnd":
        return RunEnd("not ended" if self == UNFINISHED else "failed", "bad")

    @classmethod
    def of(cls, failure: RunFailure) -> Self:
        kind = type(failure).__name__
        match failure:
            case InvocationError(error_type=kind, message=said, traceback=traceback) if kind in MODEL_ERRORS:
                return cls(kind, said, traceback, NodeError(well_formed(said)))
            case InvocationError(error_type=kind, message=said, traceback=traceback):
                wrapped = f"req_id: {REQUEST_ID} {INVOKE_ERROR}: {marshalled(remarshalled(failure.said))}"
                shows = f"Failed to transform agent message: {wrapped}"
                return cls(kind, said, traceback, NodeError(shows, type="", inputs_kept=True))
            case NodeFailedError(rule=rule, shows=shows):
                return cls(rule, str(failure), node=NodeError(shows))
            case RunStoppedError() | PriceLimitError():  # Dify has no such limit
                return cls(kind, str(failure))
        words = "killed by timeout" if isinstance(failure, RunTimeoutError) else failure
        shows = f"req_id: {REQUEST_ID} PluginDaemonInternalServerError: {words}"
        return cls(kind, str(failure), node=NodeError(shows))


CRASHED = "Fatal Python error"
_CRASH = re.compile(rf"^{CRASHED}: (.*)\n(?:.*\n)*?Current thread .*\n((?:  File .*\n?)+)", re.MULTILINE)
_PRINTED = re.compile(r"^Traceback \(most recent call last\):\n(?:[ \t].*\n)+(\w[\w.]*)(?:: (.*))?$", re.MULTILINE)


def printed_error(words: str) -> RunError | None:
    """Returns the crash of the interpreter or the last traceback in a plugin's output, or None if there is neither."""
    if crash := _CRASH.search(words):
        return RunError(CRASHED, crash[1], "\n".join(reversed(crash[2].splitlines())))
    found = [*_PRINTED.finditer(words)]
    if found:
        return RunError(found[-1][1], found[-1][2] or "", found[-1][0])
    return None


UNFINISHED = RunError("TraceEndsError", "the trace ends before the run does: it was killed, or it is still going on")
"""The error of a run whose trace has no end."""


@dataclass(frozen=True)
class SentToolCall:
    """A tool call that was sent."""

    name: str
    arguments: JsonObject
    """The arguments that the tool got."""
    error: str = ""
    """Why the call failed, in one line; empty if the call succeeded."""

    def __str__(self) -> str:
        called = f"{self.name}({json.dumps(self.arguments, ensure_ascii=False)})"
        if self.error:
            return f"{called} failed: {self.error}"
        return called


@dataclass(frozen=True)
class CallsMade:
    """The backwards calls that the strategy and its tools made."""

    counts: Mapping[str, int] = field(default_factory=dict)
    """The number of calls by their type: llm, tool, …"""
    spent: JsonObject = field(default_factory=lambda: spent([]))
    """The total usage of all model responses."""
    tools: Mapping[str, SentToolCall] = field(default_factory=dict)
    """The tool calls by the id of their request, in the order of the calls."""

    @property
    def failures(self) -> dict[str, str]:
        """The errors of failed tool calls, by the id of the request."""
        return {request: call.error for request, call in self.tools.items() if call.error}


def sent_otherwise(written: JsonObject, sent: JsonObject) -> JsonObject:
    """Returns the arguments that a tool got but the model did not write: cast values, defaults, the panel's values."""
    return {
        name: value
        for name, value in sent.items()
        if name not in written or (type(value), value) != (type(written[name]), written[name])
    }


@dataclass(frozen=True)
class RunEnd:
    """How a run ended."""

    words: str
    level: Literal["good", "limited", "bad"]
    stop_reason: str = ""
    """The stop reason that the strategy gave; empty if the strategy gave none."""

    def __str__(self) -> str:
        if self.stop_reason not in ("", ANSWERED):
            return f"{self.words} ({self.stop_reason})"
        return self.words

    def after(self, seconds: float) -> str:
        """Returns the ending with its duration, such as `finished in 1.23 s` or `failed after 1.23 s`."""
        return f"{self} {'in' if self.level == 'good' else 'after'} {seconds:.2f} s"


@dataclass(frozen=True)
class ToolCalls:
    """How the tool calls of a run ended."""

    sent: int
    failed: int
    """The number of sent calls that failed."""
    refused: int
    """The number of calls that the strategy did not send, according to its log."""

    @property
    def count(self) -> int:
        return self.sent + self.refused

    @property
    def are_in_vain(self) -> bool:
        """Whether there were tool calls and all of them failed or were refused."""
        return bool(self.count) and self.failed + self.refused == self.count

    @property
    def trouble(self) -> str:
        """A summary of the unsuccessful calls, such as "1 failed, 2 refused"; empty if all calls succeeded."""
        return ", ".join(
            f"{count} {word}" for count, word in ((self.failed, "failed"), (self.refused, "refused")) if count
        )

    @property
    def remark(self) -> str:
        """A remark to append, such as "; of 3 tool calls, 1 failed"; empty if all calls succeeded."""
        if self.trouble:
            return f"; of {counted(self.count, 'tool call')}, {self.trouble}"
        return ""

    @classmethod
    def sum_of(cls, runs: "Iterable[Run]") -> Self:
        calls = [run.tool_calls for run in runs]
        return cls(*(sum(getattr(each, name) for each in calls) for name in ("sent", "failed", "refused")))


@dataclass(frozen=True)
class Run:
    """One run of the node: its outputs, its error or None, and the rules of Dify that it broke."""

    strategy: str
    outputs: NodeOutputs
    """For a failed run, the outputs up to the failure. Dify keeps only the text on the screen."""
    error: RunError | None
    findings: list[Finding]
    messages: list[JsonObject]
    elapsed_seconds: float
    """The duration, rounded to milliseconds so that a trace and `--json` have exactly what the terminal shows."""
    calls: CallsMade = field(default_factory=CallsMade)
    session_id: str = ""
    """The id of the session on the wire; empty if the plugin ended before the session began."""

    @property
    def was_stopped(self) -> bool:
        """Whether a person stopped the run."""
        return self.error is not None and self.error.kind == RunStoppedError.__name__

    @property
    def asked(self) -> Mapping[str, int]:
        """The number of backwards calls by their type."""
        return self.calls.counts

    @property
    def called(self) -> list[tuple[str, JsonObject]]:
        """The name and the arguments of each tool call, in the order of the calls."""
        return [(call.name, call.arguments) for call in self.calls.tools.values()]

    @property
    def tool_calls(self) -> ToolCalls:
        refused = sum(entry.is_refused for root in self.outputs.logs for entry in root.every)
        return ToolCalls(self.asked.get("tool", 0), len(self.calls.failures), refused)

    @property
    def usage(self) -> Any:  # noqa: ANN401 - a plugin's variable of this name replaces the node's
        """The usage of the run, as the node reports it. For a failed run, Dify loses the report, so `calls` is used."""
        if self.error and self.calls.spent["total_tokens"]:
            return self.calls.spent
        return self.outputs.usage

    @property
    def ending(self) -> RunEnd:
        """How the run ended. If the run did not fail, the strategy's variable `stop_reason` can say why it ended."""
        reason = self.outputs.variables.get("stop_reason")
        code = ""
        if isinstance(reason, str):
            code = reason
        if self.error is not None:
            return self.error.ending
        if code in ("", ANSWERED):
            if self.tool_calls.are_in_vain:
                return RunEnd("finished without a successful tool call", "limited", code)
            last = {call.name: call for call in self.calls.tools.values()}  # a later success cancels out a failure
            if failed := " and ".join(name for name, call in last.items() if call.error):
                return RunEnd(f"finished with a failed call of {failed}", "limited", code)
            return RunEnd("finished", "good", code)
        return RunEnd(STOPPED.get(code, "ended early"), "limited", code)


# A run as one JSON object, for programs.


def never_begun(strategy: str, error: HostError) -> Run:
    """Returns the run of a plugin that did not start, or that ended before the run."""
    return Run(strategy, NodeOutputs(), RunError(type(error).__name__, str(error)), [], [], 0.0)


def report(run: Run, model: ModelDescription, spending: JsonObject | None = None) -> dict[str, Any]:
    outputs = run.outputs
    return {
        "text": outputs.text,
        "files": outputs.files,
        "json": outputs.json,
        "usage": outputs.usage,
        "spent": run.calls.spent,
        "variables": outputs.variables,
        "logs": [root.tree() for root in outputs.logs],
        "dropped_retriever_resources": outputs.dropped_retriever_resources,
        "findings": [asdict(finding) for finding in run.findings],
        "error": None if run.error is None else asdict(run.error),
        "strategy": run.strategy,
        "elapsed_seconds": run.elapsed_seconds,
        "model": {**model.facts, **({} if spending is None else {"spending": spending})},
    }

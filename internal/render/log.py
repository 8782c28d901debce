"""The log of a run for people: ROUND n, and below it the model's turn and each CALL.

A row shows the beginnings of values, without secrets. The row above it summarizes costs and results. Dify shows about
24 characters of a label, in capitals, and sorts the names in a row's data (docs/host-facts.md, "Log entries").
"""

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from secrets import token_hex
from typing import Any, assert_never

from dify_plugin.entities.agent import AgentInvokeMessage
from dify_plugin.entities.invoke_message import InvokeMessage
from dify_plugin.entities.provider_config import LogMetadata

from internal import events as e
from internal.budget import Usage
from internal.call import Reference, RejectedCall, ToolCall, ValidCall, WaitingCall
from internal.errors import OurWords, Sentence
from internal.host.failures import FailureKind, HostFailure
from internal.json_values import MAX_EXACT_INTEGER, read_exactly, rebuilt
from internal.node.tools import Tool
from internal.node.virtual_tools import RESERVED_NAMES
from internal.text.secrets import REDACTED, KnownSecrets, Redactor, looks_secret, without_named
from internal.text.texts import wellformed

_KINDS = frozenset(FailureKind)
_OURS = frozenset({"status", "stop_reason"})
_FINISH_REASONS = frozenset(
    {"stop", "end_turn", "stop_sequence", "eos", "complete", "completed", "tool_calls", "tool_use", "function_call"}
    | {"length", "max_tokens", "max_output_tokens", "content_filter", "safety", "refusal", "error"}
)
"""Finish reasons that a log without contents shows. Other texts from a provider are not shown, because they could
contain anything."""
_TOOLS = frozenset({"tool", "tool_calls"})

MAX_PREVIEW_LENGTH = 2_000
"""Maximum characters of one value. Dify stores every row twice (docs/host-facts.md, "Log entries")."""
_MAX_ERROR = 1_000
_MAX_LABEL_LENGTH = 120
_MAX_BEGINNING = 300
"""Maximum characters of a call and of its result in the row of their round."""

MAX_PROVIDERS = 20
"""Maximum rows of a run that name a provider. Each delays the stream by about half a second on a busy machine."""
_ADDRESS = re.compile(r"https?://\S{1,1000}", re.IGNORECASE)
_ASSET = re.compile(r"[\w-][\w.-]{0,1000}\.(?:svg|png|jpe?g|gif|webp|ico)", re.IGNORECASE)

_written = json.JSONEncoder(ensure_ascii=False).encode


_Status = InvokeMessage.LogMessage.LogStatus


@dataclass(frozen=True)
class LogContent:
    """How much content a run's log shows: everything, or only names, sizes and kinds."""

    is_shown: bool = True
    tools: Mapping[str, Tool] = field(default_factory=dict)
    """The tools that the model knows. Other names in its calls are not names of tools or arguments."""

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> "LogContent":
        """Read the setting that main.py has put into the environment.

        Any value except ``on`` keeps contents out of the log.
        """
        return cls(environment.get("LOG_CONTENT", "on") == "on")

    def data(self, data: Mapping[str, Any]) -> Mapping[str, Any]:
        if self.is_shown:
            return data
        return {name: rebuilt(value, self._sized, name) for name, value in data.items()}

    def arguments(self, call: ToolCall) -> Mapping[str, Any] | str:
        """Return the arguments by the tool's own names, or only their sizes if contents are hidden.

        Even a number may be confidential, such as the number of an account.
        """
        arguments: Mapping[str, Any] | str = wellformed(call.arguments)
        if call.parsed.ok:
            arguments = call.parsed.args
        tool = self.tools.get(call.name)
        if tool and not isinstance(arguments, str):
            arguments = tool.in_own_names(arguments)
        if self.is_shown:
            return arguments
        if isinstance(arguments, str):
            return size_of(arguments)
        known = {}
        if tool:
            known = tool.in_own_names(tool.prompt_tool.parameters.get("properties", {}))
        return {name if name in known else f"a name of {size_of(name)}": size_of(arguments[name]) for name in arguments}

    def reference(self, reference: Reference) -> object:
        """Return an argument with its results put in and shortened, or only their lengths if contents are hidden."""
        lengths = [f"{length:,} characters" for _, _, length in reference.results]
        if self.is_shown:
            return reference.shown
        return ", ".join(lengths)

    def name(self, tool: str) -> str:
        if self.is_shown or tool in self.tools or tool in RESERVED_NAMES:
            return tool
        return f"a name of {size_of(tool)}"

    def words(self, text: Sentence) -> str:
        if self.is_shown or isinstance(text, OurWords):
            return text
        return size_of(text)

    def error(self, error: str) -> str:
        """Return the error, or only the kind of failure if contents are kept out."""
        if self.is_shown or isinstance(error, OurWords):
            return error
        named = error.partition(":")[0]
        if named in _KINDS:
            return named
        return HostFailure(error).kind.value

    def _sized(self, value: object, name: str) -> object:
        """Return the size of a text instead of the text."""
        if not isinstance(value, str):
            return value
        if name in _TOOLS:
            return self.name(value)
        if name == "finish_reason" and value.rpartition(".")[2].lower().replace("-", "_") in _FINISH_REASONS:
            return value.rpartition(".")[2]
        if name in _OURS or not value:
            return value
        return size_of(value)


def size_of(value: object) -> str:
    if isinstance(value, str):
        text = value
    else:
        text = _written(value)
    return f"{len(text):,} character{'' if len(text) == 1 else 's'}"


def error_text(error: str, secrets: KnownSecrets) -> str:
    """Return an error text without anything that looks like a secret. The middle of a long text is removed."""
    shown = without_named(wellformed(secrets.for_people.error(error)))
    if len(shown) <= _MAX_ERROR:
        return shown
    return f"{shown[:900]} … {shown[-100:]}"


def preview(value: object, redactor: Redactor) -> object:
    """Return a value as a row shows it: without secrets, and only the beginning of a long text.

    Values under a name such as ``password`` are also hidden. Here it is better to hide too much than too little.
    """
    if isinstance(value, int | float) and abs(value) <= MAX_EXACT_INTEGER:
        return redactor.json(value)
    if isinstance(value, str):
        text = value
    else:
        text = _written(value)
    if len(text) > MAX_PREVIEW_LENGTH:
        return f"{without_named(redactor.head(text, MAX_PREVIEW_LENGTH))}… ({len(text):,} characters)"
    if isinstance(value, str):
        shown = redactor.text(value)
    else:
        shown = redactor.json(read_exactly(text))
    return rebuilt(shown, _hidden)


def _hidden(value: object, name: str) -> object:
    """Redact a value whose name is that of a secret, even in JSON inside a text."""
    if looks_secret(name) and not isinstance(value, bool) and value not in (None, "", [], {}):
        return REDACTED
    if not isinstance(value, str):
        return value
    if value.startswith(("{", "[")):
        with contextlib.suppress(ValueError, RecursionError):
            whole = json.loads(value)
            hidden = rebuilt(whole, _hidden)
            if hidden == whole:
                return value
            return _written(hidden)
    return without_named(value)


class LogRow(InvokeMessage.LogMessage):
    """A log message whose metadata may contain ``icon``. Dify's log view reads it, but the SDK's enum lacks it."""

    data: dict[str, Any]
    metadata: dict[str, Any] | None = None  # type: ignore[assignment] # the reason for this class


@dataclass
class _OpenRow:
    """A row that was started, with the data about the rows below it that it will report."""

    label: str
    data: dict[str, Any]
    is_call: bool = False
    is_round: bool = False
    said: str = ""
    """The model's text in the turn directly below this row."""
    calls: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """The calls directly below this row, by their keys."""
    usage: Usage | None = None
    failed_calls: int = 0


class LogTree:
    """Writes log messages and remembers which rows are open."""

    def __init__(self, secrets: KnownSecrets, content: LogContent) -> None:
        self._secrets = secrets
        self._content = content
        self._run = token_hex(6)
        self._open: dict[str, _OpenRow] = {}
        self._notes = 0
        self._notes_of_run: list[object] = []
        self._looked_up: set[str] = set()
        """Names of tools with a row that names their provider."""

    def messages(self, event: e.LogEvent) -> Iterator[AgentInvokeMessage]:
        """Yield the log messages for an event."""
        match event:
            case e.LogNote():
                yield from self._note(event)
            case e.SpanStarted():
                yield self._span_started(event)
            case e.SpanFinished():
                yield from self._round_finished(event)
            case e.ModelStarted():
                yield self._model_started(event)
            case e.ModelFinished():
                yield self._model_finished(event)
            case e.ToolStarted():
                yield self._tool_started(event)
            case e.ToolFinished():
                yield self._tool_finished(event)
            case _:
                assert_never(event)

    def _span_started(self, event: e.SpanStarted) -> AgentInvokeMessage:
        if not (self._content.is_shown and event.about):
            return self._start(event.key, event.label, {}, is_round=event.is_round)
        label = event.about
        if event.number:
            label = f"{event.number}. {label}"
        return self._start(event.key, label, {"row": event.label}, is_round=event.is_round)

    def _model_started(self, event: e.ModelStarted) -> AgentInvokeMessage:
        requests: list[str] = []
        if event.key in self._open:
            requests += self._open[event.key].data["request_ids"]
        return self._start(event.key, event.model, {"request_ids": [*requests, event.request_id]})

    def summary(self, summary: e.RunSummary, data: Mapping[str, Any]) -> AgentInvokeMessage:
        """Return the last log entry of a run. Dify's page cuts a label after some 24 characters."""
        shown = self._shown(data) | _said({"notes": self._notes_of_run})
        return self._write("summary", _Status.SUCCESS, f"ENDED: {summary.stop_reason}", shown)

    def close_all(self, error: str) -> Iterator[AgentInvokeMessage]:
        """Finish every open row with the error, the innermost first, and log the notes of the run in their own row."""
        for key in reversed(list(self._open)):
            yield self._finish(key, error=error)
        if self._notes_of_run:
            yield self._write("notes", _Status.SUCCESS, "NOTES", {"notes": self._notes_of_run})

    def _note(self, event: e.LogNote) -> Iterator[AgentInvokeMessage]:
        text = self._secrets.for_people.error(self._content.words(event.text))
        shown = preview(text, self._secrets.for_people)
        if event.parent is None and not event.is_row:
            self._notes_of_run.append(shown)
            return
        self._notes += 1
        if event.parent:
            key = f"{event.parent}.note{self._notes}"
        else:
            key = f"note{self._notes}"
        yield self._write(key, _Status.SUCCESS, f"NOTE {text}"[:_MAX_LABEL_LENGTH], {"note": shown})

    def _round_finished(self, event: e.SpanFinished) -> Iterator[AgentInvokeMessage]:
        for key in [key for key in reversed(self._open) if key.startswith(f"{event.key}.")]:
            yield self._finish(key, error=event.error or OurWords("left unfinished"))
        row = self._open[event.key]
        error = event.error
        if row.is_round and row.failed_calls and not error:  # Dify's page would show the errors only below the row
            error = OurWords(f"{row.failed_calls} of {len(row.calls)} calls failed")
        below = {
            # The length of the key puts call 2 before call 10.
            "calls": [row.calls[key] for key in sorted(row.calls, key=lambda key: (len(key), key))],
            "cost": cost_in_words(row.usage) if row.usage else "",
            "error": error or "",
            "failed_calls": row.failed_calls or None,
        }
        data = self._shown({"assistant": row.said, **event.data}) | _said(below)
        metadata = {}
        if row.usage:
            metadata = cost(row.usage)
        yield self._finish(event.key, event.elapsed_seconds, data, metadata, error=error)

    def _model_finished(self, event: e.ModelFinished) -> AgentInvokeMessage:
        data = {
            "text": event.text,
            "thought": event.thought,
            "tool_calls": list(event.calls),
            "finish_reason": event.finish_reason,
            "prompt_tokens": event.usage.prompt_tokens,
            "completion_tokens": event.usage.completion_tokens,
            **event.marks,
        }
        for row in self._above(event.key):
            if row.usage:
                row.usage = row.usage + event.usage
            else:
                row.usage = event.usage
        for row in islice(self._above(event.key), 1):
            row.said = event.text or row.said
        return self._finish(event.key, event.elapsed_seconds, self._shown(data), cost(event.usage), error=event.error)

    def _tool_started(self, event: e.ToolStarted) -> AgentInvokeMessage:
        call = event.call.call
        redactor = self._secrets.for_people
        arguments = self._content.arguments(call)
        checked = event.call
        if isinstance(event.call, WaitingCall):
            checked = event.call.valid
        references: Mapping[str, Reference] = {}
        if isinstance(checked, ValidCall):
            references = checked.references
        data = {
            "arguments": preview(arguments, redactor),
            "resolved": {name: preview(self._content.reference(each), redactor) for name, each in references.items()},
            "tool_call_id": preview(call.id, redactor) if self._content.is_shown else "",
            "request_ids": [event.request_id] if event.request_id else [],
        }
        label = f"CALL {self._content.name(call.name)}"
        if isinstance(event.call, WaitingCall):
            label += ", waits for approval"
        elif isinstance(event.call, RejectedCall) and event.call.by_user:
            label += ", not approved"
        return self._start(event.key, label, _said(data), is_call=True)

    def _tool_finished(self, event: e.ToolFinished) -> AgentInvokeMessage:
        call = event.call
        given = self._open[event.key].data.get("arguments", {})
        shown = self._shown({"tool_response": call.tool_response, "status": call.status.value})
        name = self._secrets.for_people.text(self._content.name(call.call.name))
        for above in islice(self._above(event.key), 1):
            above.calls[event.key] = {
                "call": f"{name} {given if isinstance(given, str) else _written(given)}"[:_MAX_BEGINNING],
                "result": str(shown.get("tool_response", ""))[:_MAX_BEGINNING],
                "status": call.status.value,
            }
        if call.error is None:
            error = None
        else:
            error = call.error or OurWords(call.status.value)
        icon = {}
        if call.judged.tool:
            icon = self._icon(call.judged.tool)
        return self._finish(event.key, call.elapsed_seconds, shown, icon, error=error)

    def _icon(self, tool: Tool) -> dict[str, str]:
        """Return the tool's icon if it has one, or else its provider, but only for the first row of the tool.

        Dify looks up the icon for every finished row that names a provider, while the stream waits. A row with its own
        icon costs nothing (docs/host-facts.md, "Icons and log look-ups"). For this reason, a model's row does not name
        a provider.
        """
        # The id of a plugin's provider is author/plugin/provider. For other providers a file name would be useless.
        if _ADDRESS.fullmatch(tool.icon) or ("/" in tool.provider and _ASSET.fullmatch(tool.icon)):
            return {"icon": tool.icon}
        if not tool.provider or tool.name in self._looked_up or len(self._looked_up) == MAX_PROVIDERS:
            return {}
        self._looked_up.add(tool.name)
        return {LogMetadata.PROVIDER.value: tool.provider}

    def _above(self, key: str) -> Iterator[_OpenRow]:
        while key := _key_above(key):
            yield self._open[key]

    def _start(
        self, key: str, label: str, data: dict[str, Any], *, is_call: bool = False, is_round: bool = False
    ) -> AgentInvokeMessage:
        row = _OpenRow(self._secrets.for_people.text(label)[:_MAX_LABEL_LENGTH], data, is_call, is_round)
        self._open[key] = row
        return self._write(key, _Status.START, row.label, data)

    def _finish(
        self,
        key: str,
        elapsed_seconds: float | None = None,
        data: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        error: str | None = None,
    ) -> AgentInvokeMessage:
        """Finish an open row. ``data`` must already be fit to be shown."""
        row = self._open.pop(key)
        status = _Status.SUCCESS
        shown = {**row.data, **(data or {})}
        if elapsed_seconds is None:
            elapsed = {}
        else:
            elapsed = {LogMetadata.ELAPSED_TIME.value: round(elapsed_seconds, 3)}
        if error:
            for above in self._above(key):
                above.failed_calls += row.is_call
            error = error_text(self._content.error(error), self._secrets)
            status = _Status.ERROR
            shown["error"] = error
        return self._write(key, status, row.label, shown, error=error, metadata={**elapsed, **(metadata or {})})

    def _shown(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields as the log shows them, without empty fields."""
        fields = _said(self._content.data(data)).items()
        return {name: preview(value, self._secrets.for_people) for name, value in fields}

    def _write(self, key: str, status: _Status, label: str, data: dict[str, Any], **end: Any) -> AgentInvokeMessage:  # noqa: ANN401 - error and metadata
        """Create a log message. Keys are unique in a run, but ids must be unique in all runs of a workflow."""
        above = None
        if outer := _key_above(key):
            above = f"{self._run}-{outer}"
        row = LogRow(id=f"{self._run}-{key}", parent_id=above, status=status, label=label, data=data, **end)
        return AgentInvokeMessage(type=InvokeMessage.MessageType.LOG, message=row)


def _said(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if value not in (None, "", [], {})}


def _key_above(key: str) -> str:
    """Return the key of the row above a row; "" for a top-level row."""
    return key.rpartition(".")[0]


def cost(usage: Usage) -> dict[str, Any]:
    """Return tokens and price in the form that Dify's panel reads."""
    price = {
        LogMetadata.TOTAL_PRICE.value: float(usage.total_price),
        LogMetadata.CURRENCY.value: usage.currency or "USD",
    }
    return {LogMetadata.TOTAL_TOKENS.value: usage.total_tokens, **price}


def cost_in_words(usage: Usage) -> str:
    price = ""
    if usage.total_price:
        price = f", {usage.total_price:f} {usage.currency or 'USD'}"
    return f"{usage.total_tokens:,} tokens{price}"

"""The metadata of a finished log row: what it has cost, and where Dify finds its icon."""

import json
import re
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, assert_never

from dify_plugin.entities.agent import AgentInvokeMessage
from dify_plugin.entities.invoke_message import InvokeMessage
from dify_plugin.entities.provider_config import LogMetadata

from internal import events as e
from internal.budget import Usage
from internal.call import CallStatus, WaitingCall
from internal.errors import OurWords
from internal.node.tools import Tool
from internal.render.outgoing import LogContent, Outgoing

# The metadata of a finished log row: what it has cost, and where Dify finds its icon.
#
# Dify reads tokens, price and currency there. For every finished row that names a provider its API looks the icon up
# while the stream waits; a row that brings its icon costs no look-up (docs/host-facts.md, "Icons and log look-ups").

MAX_PROVIDERS = 20
"""Rows of a run that name a provider: each holds the stream up by about half a second on a busy machine."""
_ICON = "icon"
_MAX_ICON_LENGTH = 1_000
_ADDRESS = re.compile(r"https?://\S+", re.IGNORECASE)
_ASSET = re.compile(r"[\w-][\w.-]*\.(?:svg|png|jpe?g|gif|webp|ico)", re.IGNORECASE)


class LogRow(InvokeMessage.LogMessage):
    """A log message whose metadata may hold ``icon``, which Dify's log view reads and the SDK's enum of keys lacks."""

    metadata: Mapping[str, Any] | None = None  # type: ignore[assignment] # the reason for this class


@dataclass
class Icons:
    """Chooses the source of each tool row's icon.

    Rows of models name no provider: they end while the answer streams, which would wait for the look-up.
    """

    _looked_up: set[str] = field(default_factory=set)

    def of_tool(self, tool: Tool) -> dict[str, str]:
        """The icon that the tool brings, else its provider in the first row of the tool."""
        if is_shown(tool.icon, tool.provider):
            return {_ICON: tool.icon}
        if not tool.provider or tool.name in self._looked_up or len(self._looked_up) == MAX_PROVIDERS:
            return {}
        self._looked_up.add(tool.name)
        return {LogMetadata.PROVIDER.value: tool.provider}


def is_shown(icon: str, provider: str) -> bool:
    """Whether the log view can show it: an address, or a file among the assets of the plugin that has the provider.

    The provider of a plugin is ``author/plugin/provider``; a file name of any other leads nowhere.
    """
    is_asset = "/" in provider and _ASSET.fullmatch(icon) is not None
    return len(icon) <= _MAX_ICON_LENGTH and (is_asset or _ADDRESS.fullmatch(icon) is not None)


def cost(usage: Usage) -> dict[str, Any]:
    """Tokens and price as Dify's panel reads them."""
    return {
        LogMetadata.TOTAL_TOKENS.value: usage.total_tokens,
        LogMetadata.TOTAL_PRICE.value: float(usage.total_price),
        LogMetadata.CURRENCY.value: usage.currency or "USD",
    }


def cost_in_words(usage: Usage) -> str:
    tokens = f"{usage.total_tokens:,} tokens"
    return f"{tokens}, {usage.total_price:f} {usage.currency or 'USD'}" if usage.total_price else tokens


def elapsed(seconds: float | None) -> dict[str, float]:
    return {} if seconds is None else {LogMetadata.ELAPSED_TIME.value: round(seconds, 3)}


@dataclass
class Totals:
    """What the rows below each row of a run have cost, and how many calls among them failed.

    A row's key says what stands above it.
    """

    _usage: dict[str, Usage] = field(default_factory=dict)
    _failed: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def add_turn(self, key: str, usage: Usage) -> None:
        for above in _keys_above(key):
            self._usage[above] = self._usage.get(above, Usage()) + usage

    def add_call(self, key: str, *, failed: bool) -> None:
        for above in _keys_above(key):
            self._failed[above] += failed

    def usage_below(self, key: str) -> Usage | None:
        """None if no model was called."""
        return self._usage.get(key)

    def failed_below(self, key: str) -> dict[str, int]:
        """Empty if none failed."""
        return {"failed_calls": self._failed[key]} if self._failed.get(key) else {}


def key_above(key: str) -> str | None:
    """The key of the row that a row hangs from; None for one at the top."""
    return key.rpartition(".")[0] or None


def _keys_above(key: str) -> Iterator[str]:
    parts = key.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts)))


# The log that a person reads: ROUND n, below it the model's turn and each CALL.
#
# Each inner row says what the model said, its calls with their results, and the cost of the rows below it; the last
# row has the notes that belong to no other. Labels are short: Dify shows about 24 characters, in capitals. Dify also
# sorts the names in a row's data (docs/host-facts.md, "Log entries").

_MAX_LABEL_LENGTH = 120
_MAX_BEGINNING = 300
"""Characters of a call's arguments and of its result in the row above it."""
_MAX_NOTES = 50
"""Notes in the last row."""
_LEFT_UNFINISHED = OurWords("left unfinished")

_Status = LogRow.LogStatus


class LogTree:
    """Writes log messages and remembers which of them are open."""

    def __init__(self, out: Outgoing, content: LogContent) -> None:
        self._out = out
        self._content = content
        self._run = uuid.uuid4().hex[:12]
        self._notes = 0
        self._of_run: list[str] = []
        self._said: dict[str, str] = {}
        self._calls: dict[str, dict[str, dict[str, str]]] = {}
        self._open: dict[str, LogRow] = {}
        self._open_calls: set[str] = set()
        self._icons = Icons()
        self._totals = Totals()

    def messages(self, event: e.LogEvent) -> Iterator[AgentInvokeMessage]:
        """The log messages of an event."""
        match event:
            case e.Noted():
                yield from self._note(event)
            case e.SpanStarted():
                number = f"{event.number}. " if event.number else ""
                about = f"{number}{event.about}" if event.about and self._content.is_shown else ""
                yield self._start(event.key, about or event.label, {"row": event.label} if about else {})
            case e.SpanFinished():
                yield from self._round_finished(event)
            case e.ModelStarted():
                yield self._start(event.key, event.model, _sent_under(event.request_id))
            case e.ModelFinished():
                yield self._model_finished(event)
            case e.ToolStarted():
                yield self._tool_started(event)
            case e.ToolFinished():
                yield self._tool_finished(event)
            case e.RequestRepeated():
                yield self._repeated(event)
            case _:
                assert_never(event)

    def summary(self, summary: e.RunSummary, data: Mapping[str, Any]) -> AgentInvokeMessage:
        """The last log of a run."""
        shown, label = {**self._shown(data), **self._notes_of_run()}, f"RUN FINISHED: {summary.stop_reason}"
        return self._write(self._new("summary", None, label, _Status.SUCCESS, shown))

    def close_all(self, error: str) -> Iterator[AgentInvokeMessage]:
        """Finish every open log in error, innermost first; without a last row, the run's notes get one."""
        for key in reversed(list(self._open)):
            yield self._finish(key, None, error=error)
        if self._of_run:
            yield self._write(self._new("notes", None, "NOTES", _Status.SUCCESS, self._notes_of_run()))

    def _note(self, event: e.Noted) -> Iterator[AgentInvokeMessage]:
        text = self._out.words(self._content.words(event.text))
        if event.parent is None and not event.is_row:
            self._of_run.append(str(self._out.preview(text)))
            return
        self._notes += 1
        data = self._preview({"note": text})
        yield self._write(self._new(f"note{self._notes}", event.parent, f"NOTE {text}", _Status.SUCCESS, data))

    def _notes_of_run(self) -> dict[str, list[str]]:
        more = [f"and {len(self._of_run) - _MAX_NOTES} more"] if len(self._of_run) > _MAX_NOTES else []
        return {"notes": self._of_run[:_MAX_NOTES] + more} if self._of_run else {}

    def _round_finished(self, event: e.SpanFinished) -> Iterator[AgentInvokeMessage]:
        inner = [key for key in self._open if key.startswith(f"{event.key}.")]
        for key in reversed(inner):
            if key in self._open_calls:
                self._totals.add_call(key, failed=True)
            yield self._finish(key, None, error=event.error or _LEFT_UNFINISHED)
        usage, calls = self._totals.usage_below(event.key), self._calls.get(event.key, {})
        data: dict[str, Any] = {
            **self._shown({"assistant": self._said.get(event.key, ""), **event.data}),
            **({"calls": [calls[key] for key in sorted(calls, key=_in_order)]} if calls else {}),
            **({"cost": cost_in_words(usage)} if usage else {}),
            **self._totals.failed_below(event.key),
        }
        yield self._finish(event.key, event.elapsed_seconds, data, cost(usage) if usage else {}, error=event.error)

    def _model_finished(self, event: e.ModelFinished) -> AgentInvokeMessage:
        data = {
            "text": event.text,
            "thought": event.thought,
            "tool_calls": list(event.calls),
            "finish_reason": event.finish_reason,
            "prompt_tokens": event.usage.prompt_tokens,
            "completion_tokens": event.usage.completion_tokens,
        }
        self._totals.add_turn(event.key, event.usage)
        if event.text and (above := key_above(event.key)):
            self._said[above] = event.text
        return self._finish(event.key, event.elapsed_seconds, self._shown(data), cost(event.usage), error=event.error)

    def _tool_started(self, event: e.ToolStarted) -> AgentInvokeMessage:
        call = event.call.call
        shown = self._content.arguments(call)
        data = {"arguments": self._out.arguments(shown)} if shown else {}
        data |= self._shown({"tool_call_id": call.id}) if self._content.is_shown else {}
        data |= _sent_under(event.request_id) if event.request_id else {}
        self._open_calls.add(event.key)
        waits = ", waits for approval" if isinstance(event.call, WaitingCall) else ""
        return self._start(event.key, f"CALL {self._content.name(call.name)}{waits}", data)

    def _tool_finished(self, event: e.ToolFinished) -> AgentInvokeMessage:
        call = event.call
        data = {"tool_response": call.tool_response, "status": call.status.value}
        failed = call.status in {CallStatus.ERROR, CallStatus.REFUSED}
        self._totals.add_call(event.key, failed=failed)
        error = (call.error or OurWords(call.status.value)) if failed else None
        icon = self._icons.of_tool(call.judged.tool) if call.judged.tool else {}
        shown = self._shown(data)
        if above := key_above(event.key):
            given = self._open[event.key].data.get("arguments", {})
            written = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
            self._calls.setdefault(above, {})[event.key] = {
                "call": f"{self._out.text(self._content.name(call.call.name))} {written}"[:_MAX_BEGINNING],
                "result": str(shown.get("tool_response", ""))[:_MAX_BEGINNING],
                "status": call.status.value,
            }
        return self._finish(event.key, call.elapsed_seconds, shown, icon, error=error)

    def _repeated(self, event: e.RequestRepeated) -> AgentInvokeMessage:
        opened = self._open[event.key]
        data = {**opened.data, "request_ids": [*opened.data["request_ids"], event.request_id]}
        self._open[event.key] = opened.model_copy(update={"data": data})
        return self._write(self._open[event.key])

    def _start(self, key: str, label: str, data: Mapping[str, Any]) -> AgentInvokeMessage:
        self._open[key] = self._new(key, key_above(key), label, _Status.START, data)
        return self._write(self._open[key])

    def _finish(
        self,
        key: str,
        elapsed_seconds: float | None,
        data: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        error: str | None = None,
    ) -> AgentInvokeMessage:
        """Finish an open log under its own id; ``data`` is as it may be shown."""
        opened = self._open.pop(key)
        self._open_calls.discard(key)
        error = self._out.error(self._content.error(error)) if error else None
        finished = opened.model_copy(
            update={
                "status": _Status.ERROR if error else _Status.SUCCESS,
                "error": error,
                "data": {
                    **opened.data,
                    **(data or {}),
                    **(self._preview({"error": error}) if error else {}),
                },
                "metadata": {**elapsed(elapsed_seconds), **(metadata or {})},
            }
        )
        return self._write(finished)

    def _new(
        self,
        key: str,
        parent: str | None,
        label: str,
        status: LogRow.LogStatus,
        data: Mapping[str, Any],
    ) -> LogRow:
        return LogRow(
            id=self._id(key),
            parent_id=self._id(parent) if parent else None,
            label=self._out.text(label)[:_MAX_LABEL_LENGTH],
            status=status,
            data=dict(data),
        )

    def _id(self, key: str) -> str:
        """Keys are unique in a run, ids must be among all runs of a workflow."""
        return f"{self._run}-{key}"

    def _shown(self, data: Mapping[str, Any]) -> dict[str, Any]:
        return self._preview(self._content.data(data))

    def _preview(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """The data, redacted and then cut to size, without empty values."""
        said = {name: value for name, value in data.items() if value not in (None, "", [], {})}
        together = self._out.preview(said)
        return together if isinstance(together, dict) else {name: self._out.preview(said[name]) for name in said}

    def _write(self, log: LogRow) -> AgentInvokeMessage:
        return AgentInvokeMessage(type=InvokeMessage.MessageType.LOG, message=log)


def _in_order(key: str) -> tuple[int, str]:
    """The model's order of calls, which end in any: ``call2`` before ``call10``."""
    return len(key), key


def _sent_under(request_id: str) -> dict[str, Any]:
    """The ids of a row's requests on the wire: one for each try."""
    return {"request_ids": [request_id]}

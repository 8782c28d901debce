"""The log that a person reads: ROUND n, below it the model's turn and each CALL.

In: the events without text. Out: log messages: small, JSON-safe, redacted before they are cut to size, and always
finished. Each inner row says what the model said, its calls with their results, and the cost of the rows below it; the
last row has the notes that belong to no other. Labels are short: Dify shows about 24 characters, in capitals. Dify also
sorts the names in a row's data (docs/host-facts.md, "Log entries").
"""

import json
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, assert_never

from dify_plugin.entities.agent import AgentInvokeMessage
from dify_plugin.entities.invoke_message import InvokeMessage

from internal.render.log_content import LogContent
from internal.render.log_metadata import Icons, LogRow, Totals, cost, cost_in_words, elapsed, key_above
from internal.render.outgoing import Outgoing
from internal.report import events as e
from internal.report.tool_calls import CallStatus, WaitingCall
from internal.text.notes import OurWords

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

"""The log that a person reads: ROUND n, below it the model's turn and each CALL.

In: the events without text. Out: log messages: small, JSON-safe, redacted before they are cut to size, and always
finished. Each inner row sums up what the rows below it have cost.
"""

import uuid
from collections.abc import Iterator, Mapping
from typing import Any, assert_never

from dify_plugin.entities.agent import AgentInvokeMessage
from dify_plugin.entities.invoke_message import InvokeMessage

from internal.render.log_content import LogContent
from internal.render.log_metadata import Icons, LogRow, Totals, cost, elapsed, key_above
from internal.render.outgoing import Outgoing
from internal.report import events as e
from internal.report.tool_calls import CallStatus, JudgedCall, WaitingCall
from internal.text.notes import OurWords

_MAX_LABEL_LENGTH = 120
_LEFT_UNFINISHED = OurWords("left unfinished")

_Status = LogRow.LogStatus


class LogTree:
    """Writes log messages and remembers which of them are open."""

    def __init__(self, out: Outgoing, content: LogContent) -> None:
        self._out = out
        self._content = content
        self._run = uuid.uuid4().hex[:12]
        self._notes = 0
        self._open: dict[str, LogRow] = {}
        self._open_calls: set[str] = set()
        self._icons = Icons()
        self._totals = Totals()

    def messages(self, event: e.LogEvent) -> Iterator[AgentInvokeMessage]:
        """The log messages of an event."""
        match event:
            case e.Noted():
                yield self._note(event)
            case e.SpanStarted():
                yield self._start(event.key, self._content.label(event.label, event.about), {})
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
        shown, label = self._shown(data), f"RUN FINISHED: {summary.stop_reason}"
        return self._write(self._new("summary", None, label, _Status.SUCCESS, shown))

    def close_all(self, error: str) -> Iterator[AgentInvokeMessage]:
        """Finish every open log in error, innermost first."""
        for key in reversed(list(self._open)):
            yield self._finish(key, None, error=error)

    def _note(self, event: e.Noted) -> AgentInvokeMessage:
        self._notes += 1
        text = self._out.words(self._content.words(event.text))
        return self._write(
            self._new(
                f"note{self._notes}", event.parent, f"NOTE {text}", _Status.SUCCESS, self._preview({"note": text})
            )
        )

    def _round_finished(self, event: e.SpanFinished) -> Iterator[AgentInvokeMessage]:
        inner = [key for key in self._open if key.startswith(f"{event.key}.")]
        for key in reversed(inner):
            if key in self._open_calls:
                self._totals.add_call(key, failed=True)
            yield self._finish(key, None, error=event.error or _LEFT_UNFINISHED)
        data = {**event.data, **self._totals.failed_below(event.key)}
        metadata = self._totals.cost_below(event.key)
        yield self._finish(event.key, event.elapsed_seconds, data, metadata, error=event.error)

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
        metadata = {**self._icons.of_model(event.provider), **cost(event.usage)}
        return self._finish(event.key, event.elapsed_seconds, data, metadata, error=event.error)

    def _tool_started(self, event: e.ToolStarted) -> AgentInvokeMessage:
        call = event.call.call
        shown = self._content.arguments(call.parsed.args if call.parsed.ok else call.arguments)
        data = {"arguments": self._out.arguments(shown)} if shown else {}
        data |= self._shown({"tool_call_id": call.id}) if self._content.is_shown else {}
        data |= _sent_under(event.request_id) if event.request_id else {}
        self._open_calls.add(event.key)
        waits = ", waits for approval" if isinstance(event.call, WaitingCall) else ""
        return self._start(event.key, f"CALL {call.name}{waits}", data)

    def _tool_finished(self, event: e.ToolFinished) -> AgentInvokeMessage:
        call = event.call
        data = {"tool_response": call.tool_response, "status": call.status.value}
        failed = call.status in {CallStatus.ERROR, CallStatus.REFUSED}
        self._totals.add_call(event.key, failed=failed)
        error = (call.error or OurWords(call.status.value)) if failed else None
        return self._finish(event.key, call.elapsed_seconds, data, self._tools_icon(call.judged), error=error)

    def _repeated(self, event: e.RequestRepeated) -> AgentInvokeMessage:
        opened = self._open[event.key]
        data = {**opened.data, "request_ids": [*opened.data["request_ids"], event.request_id]}
        self._open[event.key] = opened.model_copy(update={"data": data})
        return self._write(self._open[event.key])

    def _tools_icon(self, call: JudgedCall) -> dict[str, str]:
        return self._icons.of_tool(call.tool.provider, call.tool.icon) if call.tool else self._icons.of_tool("", "")

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
        """Finish an open log under its own id."""
        opened = self._open.pop(key)
        self._open_calls.discard(key)
        error = self._out.error(self._content.error(error)) if error else None
        finished = opened.model_copy(
            update={
                "status": _Status.ERROR if error else _Status.SUCCESS,
                "error": error,
                "data": {
                    **opened.data,
                    **self._shown(data or {}),
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


def _sent_under(request_id: str) -> dict[str, Any]:
    """The ids of a row's requests on the wire: one for each try."""
    return {"request_ids": [request_id]}

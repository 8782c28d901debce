"""The log that a person reads: ROUND n, below it the model's turn and each CALL.

In: the events that are no text. Out: log messages: small, JSON-safe, redacted before they are cut to size, and always
finished.
"""

import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from dify_plugin.entities.agent import AgentInvokeMessage
from dify_plugin.entities.invoke_message import InvokeMessage
from dify_plugin.entities.provider_config import LogMetadata

from internal import events as e
from internal.guards import CallStatus
from internal.log_preview import preview, preview_of_arguments
from internal.redaction import KnownSecrets
from internal.secret_detection import without_named
from internal.wellformed import wellformed

_LONGEST_LABEL = 120

_Log = InvokeMessage.LogMessage
_Status = _Log.LogStatus


class LogTree:
    """Writes log messages and remembers which of them are open."""

    def __init__(self, secrets: KnownSecrets) -> None:
        self._secrets = secrets
        self._run = uuid.uuid4().hex[:12]
        self._notes = 0
        self._open: dict[str, InvokeMessage.LogMessage] = {}
        self._providers: dict[str, str] = {}

    def messages(self, event: e.Event) -> Iterator[AgentInvokeMessage]:
        """The log messages of an event; none for those that are no concern of the log's."""
        match event:
            case e.Noted():
                yield self._note(event)
            case e.RoundStarted():
                yield self._start(event.key, event.parent, event.label, {})
            case e.RoundFinished():
                inner = [key for key in self._open if key.startswith(f"{event.key}.")]
                for key in reversed(inner):
                    yield self._finish(key, None, error=event.error or "left unfinished")
                yield self._finish(event.key, event.elapsed_seconds, event.data, error=event.error)
            case e.ModelStarted():
                self._providers[event.key] = event.provider
                yield self._start(event.key, event.parent, event.model, {})
            case e.ModelFinished():
                yield self._model_finished(event)
            case e.ToolStarted():
                self._providers[event.key] = event.provider
                arguments = preview_of_arguments(event.arguments, self._secrets.redactor)
                data = {"arguments": arguments} if arguments else {}
                yield self._start(event.key, event.parent, f"CALL {event.name}", data)
            case e.ToolFinished():
                yield self._tool_finished(event)
            case _:
                return

    def summary(self, summary: e.RunSummary, data: Mapping[str, Any]) -> AgentInvokeMessage:
        """The last log of a run."""
        shown, label = self._preview(data), f"RUN FINISHED: {summary.stop_reason}"
        return self._write(self._new("summary", None, label, _Status.SUCCESS, shown))

    def close_all(self, error: str) -> Iterator[AgentInvokeMessage]:
        """Finish every open log in error, innermost first."""
        for key in reversed(list(self._open)):
            yield self._finish(key, None, error=error)

    def _note(self, event: e.Noted) -> AgentInvokeMessage:
        self._notes += 1
        text = self._secrets.redactor.error(event.text)
        return self._write(
            self._new(
                f"note{self._notes}", event.parent, f"NOTE {text}", _Status.SUCCESS, self._preview({"note": text})
            )
        )

    def _model_finished(self, event: e.ModelFinished) -> AgentInvokeMessage:
        data = {
            "text": event.text,
            "thought": event.thought,
            "tool_calls": list(event.calls),
            "finish_reason": event.finish_reason,
            "prompt_tokens": event.usage.prompt_tokens,
            "completion_tokens": event.usage.completion_tokens,
        }
        metadata = {
            LogMetadata.PROVIDER: self._providers.pop(event.key),
            LogMetadata.TOTAL_TOKENS: event.usage.total_tokens,
            LogMetadata.TOTAL_PRICE: float(event.usage.total_price),
            LogMetadata.CURRENCY: event.usage.currency or "USD",
        }
        return self._finish(event.key, event.elapsed_seconds, data, metadata, error=event.error)

    def _tool_finished(self, event: e.ToolFinished) -> AgentInvokeMessage:
        data = {"tool_response": event.tool_response, "status": event.status.value}
        failed = event.status is not CallStatus.OK
        provider = self._providers.pop(event.key)
        return self._finish(
            event.key,
            event.elapsed_seconds,
            data,
            {LogMetadata.PROVIDER: provider} if provider else {},
            error=(event.error or event.status.value) if failed else None,
        )

    def _start(self, key: str, parent: str | None, label: str, data: Mapping[str, Any]) -> AgentInvokeMessage:
        self._open[key] = self._new(key, parent, label, _Status.START, data)
        return self._write(self._open[key])

    def _finish(
        self,
        key: str,
        elapsed_seconds: float | None,
        data: Mapping[str, Any] | None = None,
        metadata: Mapping[LogMetadata, Any] | None = None,
        error: str | None = None,
    ) -> AgentInvokeMessage:
        """Finish an open log under its own id; a provider, which costs Dify a look-up, is named only here."""
        opened = self._open.pop(key)
        error = without_named(self._secrets.redactor.error(error)) if error else None
        elapsed = {} if elapsed_seconds is None else {LogMetadata.ELAPSED_TIME: round(elapsed_seconds, 3)}
        finished = opened.model_copy(
            update={
                "status": _Status.ERROR if error else _Status.SUCCESS,
                "error": error,
                "data": {**opened.data, **self._preview({**(data or {}), **({"error": error} if error else {})})},
                "metadata": {**elapsed, **(metadata or {})},
            }
        )
        return self._write(finished)

    def _new(
        self,
        key: str,
        parent: str | None,
        label: str,
        status: InvokeMessage.LogMessage.LogStatus,
        data: Mapping[str, Any],
    ) -> InvokeMessage.LogMessage:
        return _Log(
            id=self._id(key),
            parent_id=self._id(parent) if parent else None,
            label=wellformed(self._secrets.redactor.text(label))[:_LONGEST_LABEL],
            status=status,
            data=dict(data),
        )

    def _id(self, key: str) -> str:
        """Keys are unique in a run, ids must be among all runs of a workflow."""
        return f"{self._run}-{key}"

    def _preview(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """What is said, redacted and then cut to size, without what is empty."""
        said = {name: value for name, value in data.items() if value not in (None, "", [], {})}
        return {name: preview(value, self._secrets.redactor) for name, value in said.items()}

    def _write(self, log: InvokeMessage.LogMessage) -> AgentInvokeMessage:
        return AgentInvokeMessage(type=InvokeMessage.MessageType.LOG, message=log)

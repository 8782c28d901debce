"""What a call on the timeline shows when it is opened, taken from the messages that crossed."""

import json
from dataclasses import dataclass
from typing import Any

from devhost.node.messages.thought_spans import ThoughtSpans
from devhost.node.outputs.error import plugin_error
from devhost.protocol.wire import JsonObject
from devhost.trace.calls import Call
from devhost.trace.turns import WrittenCall, written_calls


@dataclass(frozen=True)
class Said:
    role: str
    text: str


@dataclass(frozen=True)
class Result:
    kind: str
    value: object
    """A text, or what is shown as JSON."""


@dataclass(frozen=True)
class OfferedTool:
    """A tool as the model was told of it."""

    name: str
    description: str
    schema: str
    """The JSON Schema of its parameters, as text."""


@dataclass(frozen=True)
class ModelCall:
    prompt: tuple[Said, ...]
    tools: tuple[OfferedTool, ...]
    completion_params: JsonObject
    thought: str
    text: str
    called: tuple[WrittenCall, ...]
    usage: JsonObject
    finish_reason: str
    chunks: int
    first_at: float | None
    error: str

    @property
    def prompt_characters(self) -> int:
        return sum(len(said.text) for said in self.prompt)


@dataclass(frozen=True)
class ToolCall:
    provider: str
    arguments: JsonObject
    results: tuple[Result, ...]
    error: str
    traceback: str = ""


def model_call(call: Call) -> ModelCall:
    deltas = [_mapping(piece.data.get("delta")) for piece in call.pieces]
    messages = [_mapping(delta.get("message")) for delta in deltas]
    spans = ThoughtSpans()
    said = [span for message in messages for span in spans.feed(_words(message.get("content")))]
    said += spans.finish()
    return ModelCall(
        prompt=prompt_of(call),
        tools=offered_tools(call),
        completion_params=_mapping(call.request.get("completion_params")),
        thought="".join(text for is_thought, text in said if is_thought).strip(),
        text="".join(text for is_thought, text in said if not is_thought).strip(),
        called=tuple(written_calls(call)),
        usage=call.usage,
        finish_reason=next((str(reason) for delta in reversed(deltas) if (reason := delta.get("finish_reason"))), ""),
        chunks=len(deltas),
        first_at=call.pieces[0].at if call.pieces else None,
        error=call.error,
    )


def prompt_of(call: Call) -> tuple[Said, ...]:
    return tuple(_said(message) for message in _items(call.request.get("prompt_messages")))


def offered_tools(call: Call) -> tuple[OfferedTool, ...]:
    return tuple(
        OfferedTool(
            str(tool.get("name")),
            str(tool.get("description") or ""),
            json.dumps(tool.get("parameters"), ensure_ascii=False, indent=2),
        )
        for tool in _items(call.request.get("tools"))
    )


def tool_call(call: Call) -> ToolCall:
    raised = plugin_error(call.error)
    return ToolCall(
        provider=str(call.request.get("provider") or call.kind),
        arguments=_mapping(call.request.get("tool_parameters")) or ({} if call.kind == "tool" else call.request),
        results=tuple(_result(piece.data) for piece in call.pieces),
        error=call.error if raised is None else f"{raised.error_type}: {raised.message}",
        traceback="" if raised is None else raised.traceback,
    )


def _said(message: JsonObject) -> Said:
    lines = [_words(message.get("content"))]
    for tool_call in _items(message.get("tool_calls")):
        function = _mapping(tool_call.get("function"))
        lines.append(f"→ {function.get('name')} {function.get('arguments')}")
    return Said(str(message.get("role")), "\n".join(filter(None, lines)))


def _words(content: object) -> str:
    if isinstance(content, str):
        return content
    return "".join(
        str(part.get("data")) if part.get("type") == "text" else f"[{part.get('type')}: {_about(part)}]"
        for part in _items(content)
    )


def _about(part: JsonObject) -> str:
    return str(part.get("filename") or part.get("mime_type") or part.get("format"))


def _result(data: JsonObject) -> Result:
    if "type" not in data:  # the answer to what a tool asks for: a summary, storage
        return Result("answer", data)
    kind = str(data["type"]).replace("_", " ")
    match data.get("message"):
        case {"text": text} | {"json_object": text}:
            return Result(kind, text)
        case body:
            return Result(kind, body)


def _mapping(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _items(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []

"""What the fake's model does when it is asked, and how each API streams it."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any
from uuid import uuid4

type Json = dict[str, Any]


@dataclass(frozen=True)
class Call:
    name: str
    arguments: Mapping[str, Any] | str
    id: str = ""
    """Issued by the server when blank."""

    @property
    def arguments_text(self) -> str:
        if isinstance(self.arguments, str):
            return self.arguments
        return json.dumps(self.arguments, ensure_ascii=False)


@dataclass(frozen=True)
class Tokens:
    prompt: int = 100
    cached: int = 0
    completion: int = 20
    reasoning: int = 0


@dataclass(frozen=True)
class Turn:
    text: str = ""
    summary: str = ""
    """What a reasoning model tells of its thoughts; a paragraph is a summary part."""
    calls: tuple[Call, ...] = ()
    tokens: Tokens | None = Tokens()
    """None from a server that does not count."""
    incomplete: str | None = None
    """max_output_tokens or content_filter."""
    error: tuple[str, str] | None = None
    """Code and message of a failure after the stream has begun."""
    cut_after: int | None = None
    """The connection breaks off after so many events."""
    ends_after: int | None = None
    """The stream ends in good order after so many events, before it is complete."""
    piece: int = 7
    """Characters of a delta."""
    interleaved: bool = False
    """Chat: the arguments of all calls side by side."""
    events: tuple[object, ...] = ()
    """Streamed as they are instead of the turn's own, however odd."""
    body: tuple[str, str] | None = None
    """The content type and the text of an answer that is sent as it is, in place of the stream."""

    def pieces(self, text: str) -> list[str]:
        return [text[start : start + self.piece] for start in range(0, len(text), self.piece)]


def chat_chunks(request: Json, turn: Turn) -> Iterator[Json]:
    common: Json = {"id": _id("chatcmpl"), "object": "chat.completion.chunk", "created": 1, "model": request["model"]}

    def chunk(delta: Json, finish_reason: str | None = None) -> Json:
        return {**common, "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}], "usage": None}

    yield chunk({"role": "assistant", "content": ""})
    for piece in turn.pieces(turn.summary):
        yield chunk({"reasoning_content": piece})
    for piece in turn.pieces(turn.text):
        yield chunk({"content": piece})
    calls = [list(_fragments(turn, index, call)) for index, call in enumerate(turn.calls)]
    for fragment in chain(*(zip_longest(*calls) if turn.interleaved else calls)):
        yield chunk({"tool_calls": [fragment]})
    if turn.error is not None:
        code, message = turn.error
        yield {"error": {"message": message, "type": code, "param": None, "code": code}}
        return
    finished = "tool_calls" if turn.calls else "stop"
    yield chunk({}, {None: finished, "max_output_tokens": "length"}.get(turn.incomplete, turn.incomplete))
    if turn.tokens is not None and request.get("stream_options", {}).get("include_usage"):
        yield {**common, "choices": [], "usage": _usage(turn.tokens, "prompt", "completion")}


def _fragments(turn: Turn, index: int, call: Call) -> Iterator[Json]:
    """A call's id and name come with its first fragment, which has no arguments yet."""
    function = {"name": call.name, "arguments": ""}
    yield {"index": index, "id": call.id or _id("call"), "type": "function", "function": function}
    for piece in turn.pieces(call.arguments_text):
        yield {"index": index, "function": {"arguments": piece}}


def response_events(request: Json, turn: Turn, output: list[Json]) -> Iterator[Json]:
    """Its items are added to the output, as they go back with the next request."""
    response: Json = {
        "id": _id("resp"),
        "object": "response",
        "created_at": 1,
        "model": request["model"],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "output": output,
    }
    yield {"type": "response.created", "response": {**response, "status": "in_progress"}}
    status = "incomplete" if turn.incomplete else "completed"
    if turn.summary:
        yield from _reasoning(turn, request, output)
    if turn.text:
        part = {"type": "output_text", "text": turn.text, "annotations": []}
        message = {"id": _id("msg"), "type": "message", "role": "assistant", "status": status, "content": [part]}
        place = {"item_id": message["id"], "content_index": 0}
        yield from _item(message, output, _deltas("output_text", turn.pieces(turn.text), place))
    for call in turn.calls:
        named = {"call_id": call.id or _id("call"), "name": call.name, "arguments": call.arguments_text}
        item = {"id": _id("fc"), "type": "function_call", **named, "status": status}
        pieces = turn.pieces(call.arguments_text)
        yield from _item(item, output, _deltas("function_call_arguments", pieces, {"item_id": item["id"]}))
    if turn.error is not None:
        code, message_ = turn.error
        failed = {**response, "status": "failed", "error": {"code": code, "message": message_}}
        yield {"type": "response.failed", "response": failed}
        return
    usage = turn.tokens and _usage(turn.tokens, "input", "output")
    ended = {**response, "status": status, "usage": usage}
    if turn.incomplete:
        ended["incomplete_details"] = {"reason": turn.incomplete}
    yield {"type": f"response.{status}", "response": ended}


def _reasoning(turn: Turn, request: Json, output: list[Json]) -> Iterator[Json]:
    """Its summary comes when it was asked for, its sealed content likewise."""
    wants_summary = (request.get("reasoning") or {}).get("summary")
    paragraphs = turn.summary.split("\n\n") if wants_summary else []
    item: Json = {
        "id": _id("rs"),
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": paragraph} for paragraph in paragraphs],
        "encrypted_content": _id("sealed") if request.get("include") else None,
    }
    events: list[Json] = []
    for number, paragraph in enumerate(paragraphs):
        place = {"item_id": item["id"], "summary_index": number}
        part = {"type": "summary_text", "text": ""}
        events += [{"type": "response.reasoning_summary_part.added", **place, "part": part}]
        events += _deltas("reasoning_summary_text", turn.pieces(paragraph), place)
    yield from _item(item, output, events)


def _item(item: Json, output: list[Json], deltas: Iterable[Json]) -> Iterator[Json]:
    index = len(output)
    for event in deltas:
        yield {"output_index": index, **event}
    output.append(item)
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _deltas(kind: str, pieces: Iterable[str], place: Json) -> list[Json]:
    return [{"type": f"response.{kind}.delta", **place, "delta": piece} for piece in pieces]


def _usage(tokens: Tokens, before: str, after: str) -> Json:
    return {
        f"{before}_tokens": tokens.prompt,
        f"{before}_tokens_details": {"cached_tokens": tokens.cached, "cache_write_tokens": 0},
        f"{after}_tokens": tokens.completion,
        f"{after}_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "total_tokens": tokens.prompt + tokens.completion,
    }


def _id(prefix: str) -> str:
    return f"{prefix}_{uuid4().hex}"

"""A turn as the events of a streamed response."""

from collections.abc import Iterator
from itertools import count
from typing import Any
from uuid import uuid4

from fake_openai.responses_schema import ResponsesRequest
from fake_openai.turns import Call, Turn

type Event = dict[str, Any]


class ResponseInTheMaking:
    def __init__(self, request: ResponsesRequest, turn: Turn) -> None:
        self.output: list[dict[str, Any]] = []
        self._id = _id("resp")
        self._request = request
        self._turn = turn
        self._numbers = count()

    def events(self) -> Iterator[Event]:
        yield self._event("response.created", response=self._response("in_progress"))
        yield self._event("response.in_progress", response=self._response("in_progress"))
        if self._turn.summary:
            yield from self._reasoning(self._turn.summary)
        if self._turn.text:
            yield from self._message(self._turn.text)
        for call in self._turn.calls:
            yield from self._function_call(call)
        if self._turn.error is not None:
            code, message = self._turn.error
            failed = {**self._response("failed"), "error": {"code": code, "message": message}}
            yield self._event("response.failed", response=failed)
        elif self._turn.incomplete is not None:
            cut = {**self._response("incomplete"), "incomplete_details": {"reason": self._turn.incomplete}}
            yield self._event("response.incomplete", response={**cut, "usage": self._usage()})
        else:
            yield self._event("response.completed", response={**self._response("completed"), "usage": self._usage()})

    def _reasoning(self, summary: str) -> Iterator[Event]:
        index, item_id = len(self.output), _id("rs")
        sealed = f"sealed-{uuid4().hex}=" if self._request.include else None
        item: dict[str, Any] = {"id": item_id, "type": "reasoning", "summary": []}
        yield self._event("response.output_item.added", output_index=index, item=item)
        parts: list[dict[str, Any]] = []
        wants_summary = self._request.reasoning is not None and self._request.reasoning.summary is not None
        for number, paragraph in enumerate(summary.split("\n\n") if wants_summary else ()):
            place = {"item_id": item_id, "output_index": index, "summary_index": number}
            part = {"type": "summary_text", "text": ""}
            yield self._event("response.reasoning_summary_part.added", **place, part=part)
            for piece in self._turn.pieces(paragraph):
                yield self._event("response.reasoning_summary_text.delta", **place, delta=piece)
            yield self._event("response.reasoning_summary_text.done", **place, text=paragraph)
            parts.append({"type": "summary_text", "text": paragraph})
            yield self._event("response.reasoning_summary_part.done", **place, part=parts[-1])
        done = {**item, "summary": parts, "encrypted_content": sealed}
        yield self._done(index, done)

    def _message(self, text: str) -> Iterator[Event]:
        index, item_id = len(self.output), _id("msg")
        phase = "commentary" if self._turn.calls else "final_answer"
        item = {"id": item_id, "type": "message", "role": "assistant", "status": "in_progress", "phase": phase}
        yield self._event("response.output_item.added", output_index=index, item={**item, "content": []})
        place = {"item_id": item_id, "output_index": index, "content_index": 0}
        part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        yield self._event("response.content_part.added", **place, part=part)
        for piece in self._turn.pieces(text):
            yield self._event("response.output_text.delta", **place, delta=piece, logprobs=[])
        yield self._event("response.output_text.done", **place, text=text, logprobs=[])
        yield self._event("response.content_part.done", **place, part={**part, "text": text})
        yield self._done(index, {**item, "status": self._status, "content": [{**part, "text": text}]})

    def _function_call(self, call: Call) -> Iterator[Event]:
        index, item_id = len(self.output), _id("fc")
        item = {"id": item_id, "type": "function_call", "call_id": call.id or _id("call"), "name": call.name}
        begun = {**item, "arguments": "", "status": "in_progress"}
        yield self._event("response.output_item.added", output_index=index, item=begun)
        place = {"item_id": item_id, "output_index": index}
        for piece in self._turn.pieces(call.arguments_text):
            yield self._event("response.function_call_arguments.delta", **place, delta=piece)
        arguments = call.arguments_text
        yield self._event("response.function_call_arguments.done", **place, arguments=arguments, name=call.name)
        yield self._done(index, {**item, "arguments": arguments, "status": self._status})

    def _done(self, index: int, item: dict[str, Any]) -> Event:
        self.output.append(item)
        return self._event("response.output_item.done", output_index=index, item=item)

    @property
    def _status(self) -> str:
        return "incomplete" if self._turn.incomplete else "completed"

    def _event(self, kind: str, **fields: object) -> Event:
        return {"type": kind, "sequence_number": next(self._numbers), **fields}

    def _response(self, status: str) -> dict[str, Any]:
        return {
            "id": self._id,
            "object": "response",
            "created_at": 1_790_000_000,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "model": self._request.model,
            "output": list(self.output),
            "parallel_tool_calls": True,
            "tool_choice": self._request.tool_choice,
            "tools": [],
            "usage": None,
        }

    def _usage(self) -> dict[str, Any] | None:
        tokens = self._turn.tokens
        if tokens is None:
            return None
        return {
            "input_tokens": tokens.prompt,
            "input_tokens_details": {"cached_tokens": tokens.cached, "cache_write_tokens": tokens.written},
            "output_tokens": tokens.completion,
            "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
            "total_tokens": tokens.prompt + tokens.completion,
        }


def _id(prefix: str) -> str:
    return f"{prefix}_{uuid4().hex}"

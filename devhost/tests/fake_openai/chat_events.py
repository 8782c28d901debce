"""A turn as the chunks of a streamed chat completion."""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any
from uuid import uuid4

from fake_openai.chat_schema import ChatRequest
from fake_openai.turns import Call, Tokens, Turn

type Chunk = dict[str, Any]


def chat_chunks(request: ChatRequest, turn: Turn) -> Iterator[Chunk]:
    counts = request.stream_options.include_usage
    common: Chunk = {
        "id": f"chatcmpl-{uuid4().hex}",
        "object": "chat.completion.chunk",
        "created": 1_790_000_000,
        "model": request.model,
        **({"usage": None} if counts else {}),
    }

    def chunk(delta: Chunk, finish_reason: str | None = None) -> Chunk:
        return {**common, "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in turn.pieces(turn.summary):
        yield chunk({"reasoning_content": piece})
    for piece in turn.pieces(turn.text):
        yield chunk({"content": piece})
    for fragment in _fragments(turn):
        yield chunk({"tool_calls": [fragment]})
    if turn.error is not None:
        code, message = turn.error
        yield {"error": {"message": message, "type": code, "param": None, "code": code}}
        return
    yield chunk({}, _finish_reason(turn))
    if counts and turn.tokens is not None:
        yield {**common, "choices": [], "usage": _usage(turn.tokens)}


def _fragments(turn: Turn) -> Iterator[Chunk]:
    """A call's id and name come with its first fragment, which has no arguments yet."""
    calls = [list(_of_call(turn, index, call)) for index, call in enumerate(turn.calls)]
    if turn.interleaved:
        yield from (fragment for row in zip_longest(*calls) for fragment in row if fragment is not None)
    else:
        yield from (fragment for call in calls for fragment in call)


def _of_call(turn: Turn, index: int, call: Call) -> Iterator[Chunk]:
    call_id = call.id or f"call_{uuid4().hex}"
    yield {"index": index, "id": call_id, "type": "function", "function": {"name": call.name, "arguments": ""}}
    for piece in turn.pieces(call.arguments_text):
        yield {"index": index, "function": {"arguments": piece}}


def _finish_reason(turn: Turn) -> str:
    if turn.incomplete is not None:
        return "length" if turn.incomplete == "max_output_tokens" else turn.incomplete
    return "tool_calls" if turn.calls else "stop"


def _usage(tokens: Tokens) -> Chunk:
    return {
        "prompt_tokens": tokens.prompt,
        "completion_tokens": tokens.completion,
        "total_tokens": tokens.prompt + tokens.completion,
        "prompt_tokens_details": {"cached_tokens": tokens.cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": tokens.reasoning, "audio_tokens": 0},
    }

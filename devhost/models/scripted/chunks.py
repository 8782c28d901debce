"""One scripted turn as the chunks a provider plugin would stream, in each of the shapes that tool calls arrive in."""

import json
from collections.abc import Iterator

from devhost.models.backend import chunk, tool_call
from devhost.models.request import ModelRequest
from devhost.models.scripted.turn import ScriptedCall, Turn
from devhost.protocol.wire import JsonObject

CHARACTERS_PER_TOKEN = 4


def turn_chunks(turn: Turn, request: ModelRequest) -> Iterator[JsonObject]:
    """Thought, text, calls; then the last chunk, with what only the end can know."""
    model = request.model
    texts = list(_texts(turn))
    *early, last = _call_lists(turn)
    for piece in texts:
        yield chunk(model, text=piece)
    for calls in early:
        yield chunk(model, tool_calls=calls)
    yield chunk(
        model,
        tool_calls=last,
        opaque_body=turn.opaque_body,
        usage=turn_usage(turn, request, latency=turn.delay * (len(texts) + len(early) + 1)),
        finish_reason=turn.finish_reason or ("tool_calls" if turn.tool_calls else "stop"),
    )


def _texts(turn: Turn) -> Iterator[str]:
    if turn.thought:
        yield from _pieces(f"<think>\n{turn.thought}\n</think>\n\n", turn.chunk_size)
    if isinstance(turn.text, str):
        yield from _pieces(turn.text, turn.chunk_size)
    else:
        yield from turn.text


def _call_lists(turn: Turn) -> list[list[JsonObject]]:
    """The `tool_calls` of each chunk after the text; the last list comes with the last chunk."""
    whole = [tool_call(call.id, call.name, arguments_text(call)) for call in turn.tool_calls]
    match turn.call_chunking:
        case "whole":
            return [whole]
        case "per_call":
            return [*([call] for call in whole), []]
        case "fragments":
            return [*_fragments(turn), []]
        case "snapshots":
            return [*_snapshots(turn, whole), whole]


def _fragments(turn: Turn) -> Iterator[list[JsonObject]]:
    """A call's id and name come with its first piece; continuations have neither."""
    for call in turn.tool_calls:
        first, *rest = _pieces(arguments_text(call), turn.chunk_size) or [""]
        yield [tool_call(call.id, call.name, first)]
        for piece in rest:
            yield [tool_call("", "", piece)]


def _snapshots(turn: Turn, whole: list[JsonObject]) -> Iterator[list[JsonObject]]:
    """The list so far, again and again, the newest call's arguments growing."""
    for position, call in enumerate(turn.tool_calls):
        grown = ""
        for piece in _pieces(arguments_text(call), turn.chunk_size) or [""]:
            grown += piece
            yield [*whole[:position], tool_call(call.id, call.name, grown)]


def arguments_text(call: ScriptedCall) -> str:
    return call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments, ensure_ascii=False)


def _pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def turn_usage(turn: Turn, request: ModelRequest, *, latency: float) -> JsonObject | None:
    """All fields of LLMUsage, prices as strings, as Decimals travel.

    Tokens that the script does not give are estimated.
    """
    if turn.usage is None:
        return None
    said = turn.usage.model_dump(exclude_none=True)
    prompt = said.get("prompt_tokens", _tokens(request.model_dump_json(include={"prompt_messages", "tools"})))
    answer = "".join(_texts(turn)) + "".join(call.name + arguments_text(call) for call in turn.tool_calls)
    completion = said.get("completion_tokens", _tokens(answer))
    prices = {
        field: str(said.get(field, 0))
        for side in ("prompt", "completion")
        for field in (f"{side}_unit_price", f"{side}_price_unit", f"{side}_price")
    }
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": said.get("total_tokens", prompt + completion),
        **prices,
        "total_price": str(said.get("total_price", 0)),
        "currency": said.get("currency", "USD"),
        "latency": said.get("latency", round(latency, 3)),
    }


def _tokens(text: str) -> int:
    return max(1, len(text) // CHARACTERS_PER_TOKEN)

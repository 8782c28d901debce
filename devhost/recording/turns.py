"""What the model said in a run, as a script's turns.

In: the model calls of a run. Out: a turn each, as plain data. Texts and calls are whole, not in the pieces in which
they streamed; a call that failed has the pieces that came before.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from devhost.models.backend import ModelCallError
from devhost.models.scripted.turn import ScriptedUsage
from devhost.node.outputs.error import plugin_error
from devhost.protocol.wire import JsonObject
from devhost.recording.lanes import Lanes
from devhost.trace.calls import Call
from devhost.trace.turns import WrittenCall, written_calls

MODEL_CALLS = frozenset({"llm", "llm_structured_output"})
"""The types of backwards calls that a model answers."""
PLACEHOLDERS = ("{{query}}", "{{tool_results}}")
_THOUGHT = re.compile(r"<think>\n((?:(?!</?think).)+)\n</think>\n\n", re.DOTALL)
"""As a script's `thought` is streamed."""


def model_calls(calls: Iterable[Call]) -> list[Call]:
    """Those of the strategy itself, in the order in which they began."""
    return sorted((call for call in calls if call.kind in MODEL_CALLS and not call.parent), key=lambda call: call.began)


def recorded_turns(calls: Sequence[Call]) -> list[JsonObject]:
    """`calls`: of one run, as `model_calls` gives them."""
    lanes = Lanes(calls)
    return [{**_turn(call), **lanes.condition(call)} for call in calls]


def _turn(call: Call) -> JsonObject:
    texts = list(_texts(call))
    turn: JsonObject = {}
    if call.error:
        turn["text"] = texts
    else:
        thought, text = _divided("".join(texts))
        turn |= {"thought": thought} if thought else {}
        turn |= {"text": text} if text else {}
    written = written_calls(call)
    if written:
        turn["tool_calls"] = [_scripted(each) for each in written]
    turn |= _ending(call, has_calls=bool(written))
    if call.error:
        turn["error"] = {**_failure(call), "after_chunks": len(texts) + bool(written)}
    if any(placeholder in str(turn) for placeholder in PLACEHOLDERS):
        turn["as_written"] = True
    return {key: value for key, value in turn.items() if value != []}


def _texts(call: Call) -> Iterator[str]:
    for delta in _deltas(call):
        message = delta.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, str) and content:
            yield content
        elif isinstance(content, list):
            yield from (str(part["data"]) for part in content if isinstance(part, dict) and part.get("data"))


def _divided(text: str) -> tuple[str, str]:
    """A thought at the beginning, and the rest."""
    found = _THOUGHT.match(text)
    return (found.group(1), text[found.end() :]) if found else ("", text)


def _scripted(call: WrittenCall) -> JsonObject:
    """Arguments as a mapping only where a script writes the same JSON again, or nearly: spaces do not count."""
    values = call.values
    return {"name": call.name, "id": call.id, "arguments": values if isinstance(values, dict) else call.arguments}


def _ending(call: Call, *, has_calls: bool) -> JsonObject:
    """The last chunk's fields that differ from those of a script."""
    ending: JsonObject = {}
    reason = next((delta["finish_reason"] for delta in reversed(_deltas(call)) if delta.get("finish_reason")), None)
    if reason is not None and reason != ("tool_calls" if has_calls else "stop"):
        ending["finish_reason"] = reason
    if call.usage or not call.error:
        ending["usage"] = _usage(call.usage) if call.usage else None
    bodies = (delta["message"].get("opaque_body") for delta in _deltas(call) if isinstance(delta.get("message"), dict))
    body = next((body for body in bodies if body is not None), None)
    return ending if body is None else {**ending, "opaque_body": body}


def _usage(usage: JsonObject) -> JsonObject:
    """Without what a script's turn has anyway."""
    usual = {"currency": "USD"}
    return {
        name: usage[name]
        for name in ScriptedUsage.model_fields
        if usage.get(name) not in (None, usual.get(name)) and (name.endswith("tokens") or usage[name] not in ("0", 0))
    }


def _failure(call: Call) -> JsonObject:
    """A provider's error by its type if a script's model then fails in the same words; else the words."""
    raised = plugin_error(call.error)
    if raised is not None and raised.before:
        again = ModelCallError(raised.error_type, raised.message).as_dify_words_it()
        if call.error == f"{raised.before}{again}":
            return {"type": raised.error_type, "message": raised.message}
    return {"words": call.error}


def _deltas(call: Call) -> list[JsonObject]:
    return [piece.data["delta"] for piece in call.pieces if isinstance(piece.data.get("delta"), dict)]

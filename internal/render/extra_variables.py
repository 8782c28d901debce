"""The optional variables of a run: what its tools returned, and what the model thought.

In: the RunSummary. Out: the variables that the node asks for, cleaned, and how much of them was left out. Together with
``state`` they have at most MAX_EXTRA_BYTES: tool_results yields first, then thoughts, the state never. What is oldest
goes first.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import to_json

from internal.host.wire import MAX_EXACT_INTEGER
from internal.node.params import ExtraOutput
from internal.render.outgoing import Outgoing, size_on_the_wire
from internal.report.events import RunSummary, Thought
from internal.report.files import MAX_NAME_LENGTH
from internal.report.tool_calls import EndedCall, ValidCall, WaitingCall
from internal.text.fairness import in_turns

MAX_EXTRA_BYTES = 512 * 1024
"""On the wire; Dify stores 1,024,000 bytes of a node's outputs (docs/host-facts.md, "Log entries")."""
MAX_THOUGHTS = 100_000
"""Characters of all thoughts together."""
_BRACKETS = 2
_MAX_ESCAPE = 6
"""Bytes of a character that JSON escapes."""
_LEVELS_AROUND = 8
"""More than a message has around a value of a result; pydantic writes a limited number of levels."""

type _Json = dict[str, Any]


@dataclass
class ExtraVariables:
    """Cleaned variables, and what they lack."""

    values: dict[str, Any] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    """Entries that are missing, by variable; shortened thoughts count. By ``tool_results.text`` entries without their
    text and JSON, by ``tool_results.json`` JSON values that are nested too deeply."""


def extra_variables(summary: RunSummary, out: Outgoing) -> ExtraVariables:
    """The state, and the variables that the node asks for."""
    made, asked = ExtraVariables(), summary.extra_outputs
    if summary.state is not None:
        made.values["state"] = out.state(summary.state)
    room = MAX_EXTRA_BYTES - size_on_the_wire(made.values.get("state"))
    if ExtraOutput.THOUGHTS in asked:
        thoughts = made.values["thoughts"] = _thoughts(summary.thoughts, out, room, made.left_out)
        room -= size_on_the_wire(thoughts)
    if ExtraOutput.TOOL_RESULTS in asked:
        runs = [(answered.round, ended) for answered in summary.tool_rounds for ended in answered.calls]
        made.values["tool_results"] = _tool_results(runs, out, room - _BRACKETS, made.left_out)
    return made


def _thoughts(thoughts: Sequence[Thought], out: Outgoing, room: int, left_out: dict[str, int]) -> list[_Json]:
    """The newest thoughts that fit; of the newest, its end if it does not fit as a whole."""
    kept, length = list[_Json](), 0
    room -= _BRACKETS
    for thought in in_turns(reversed(thoughts)):
        entry: _Json = {"round": thought.round, "text": out.text(thought.text)}
        if thought.subtask:
            entry["subtask"] = out.text(thought.subtask)[:MAX_NAME_LENGTH]
        length += len(entry["text"])
        size = size_on_the_wire(entry)
        if length > MAX_THOUGHTS or size > room:
            left_out["thoughts"] = len(thoughts) - len(kept)
            kept = kept or [_shortened(entry, room)]
            break
        kept.append(entry)
        room -= size
    return kept[::-1]


def _shortened(entry: _Json, room: int) -> _Json:
    """A thought of which only the end fits."""
    end = {**entry, "text": entry["text"][-MAX_THOUGHTS:]}
    if size_on_the_wire(end) <= room:
        return end
    beside = size_on_the_wire({**entry, "text": ""})
    return {**entry, "text": entry["text"][-((room - beside) // _MAX_ESCAPE) :]}


def _tool_results(
    runs: Sequence[tuple[int, EndedCall]], out: Outgoing, room: int, left_out: dict[str, int]
) -> list[_Json]:
    """An entry for each call; where they do not fit, the oldest lose what the tool said, and then go."""
    entries = [_without_result(number, ended, out) for number, ended in in_turns(runs)]
    sizes = [size_on_the_wire(entry) for entry in in_turns(entries)]
    gone, left = 0, room - sum(sizes)
    while left < 0 and gone < len(sizes):
        left += sizes[gone]
        gone += 1
    left_out["tool_results"] = gone
    left = 0 if gone else left
    _fill_in([(entry, ended) for entry, (_, ended) in zip(entries, runs, strict=True)][gone:], out, left, left_out)
    return entries[gone:]


def _fill_in(entries: Sequence[tuple[_Json, EndedCall]], out: Outgoing, room: int, left_out: dict[str, int]) -> None:
    """Put what the tools said into the entries, from the newest back to the first that does not fit.

    One that would not fit even alone does not cost the older ones theirs.
    """
    left, without = room, 0
    for entry, ended in in_turns(reversed(entries)):
        before = size_on_the_wire(entry)
        said = {"text": out.text(ended.tool_response), "json": _sent_json(ended, out, left_out)} if left else {}
        added = size_on_the_wire({**entry, **said}) - before
        if said and added <= left:
            entry.update(said)
            left -= added
        else:
            without += 1
            left = left if added > room else 0
    left_out["tool_results.text"] = without


def _without_result(number: int, ended: EndedCall, out: Outgoing) -> _Json:
    judged, parsed = ended.judged, ended.call.parsed
    checked = judged.valid if isinstance(judged, WaitingCall) else judged
    written: Mapping[str, Any] | None = parsed.args if parsed.ok else None
    arguments = checked.arguments if isinstance(checked, ValidCall) else written
    return {
        "round": number,
        "tool": out.text(ended.call.name)[:MAX_NAME_LENGTH],
        "arguments": out.of_others(_read(json.dumps(arguments))),
        "status": ended.status.value,
        "text": "",
        "json": None,
    }


def _sent_json(ended: EndedCall, out: Outgoing, left_out: dict[str, int]) -> object:
    """What the tool sent as JSON: the value, a list of several, None for none."""
    values = [value for value in in_turns(map(_read, ended.sent_json)) if _can_be_written(value)]
    if deeper := len(ended.sent_json) - len(values):
        left_out["tool_results.json"] = left_out.get("tool_results.json", 0) + deeper
    return out.of_others(values if len(values) > 1 else values[0] if values else None)


def _read(text: str) -> Any:  # noqa: ANN401 - JSON
    """A JSON value as the host keeps it: integers that it would round are texts."""
    return json.loads(text, parse_int=_integer)


def _integer(digits: str) -> int | str:
    is_exact = len(digits) <= len(str(-MAX_EXACT_INTEGER)) and abs(int(digits)) <= MAX_EXACT_INTEGER
    return int(digits) if is_exact else digits


def _can_be_written(value: object) -> bool:
    for _ in range(_LEVELS_AROUND):
        value = [value]
    try:
        to_json(value)
    except ValueError:
        return False
    return True

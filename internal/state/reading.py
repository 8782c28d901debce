"""The JSON of a state, read record by record.

In: a text. Out: a State. Python's own parser cannot be interrupted, and takes long for a text that only looks like a
state: here other sessions run in between, and the first thing that does not fit is the end of it.
"""

import json
import re
from collections.abc import Callable

from pydantic import TypeAdapter

from internal.state.pieces import MAX_PARTS
from internal.state.records import (
    CallRecord,
    EntryRecord,
    FileRecord,
    FindingRecord,
    RoundRecord,
    SourceRecord,
    State,
    SubtaskRecord,
    UserRecord,
)
from internal.text.fairness import in_turns
from internal.tooling import parse_object

_SPACE = re.compile(r"[ \t\n\r]*")
_MAX_NAMES = 16
"""Of one object: more than any record has fields."""
_MAX_VALUES = 4 * MAX_PARTS
"""As many as a state of so many parts can have: the part of a source is an object with three fields."""
_MAX_NUMBER = 2**53
"""Larger integers do not pass Dify unchanged."""
_ITEMS: dict[str, TypeAdapter[object]] = {
    "entries": TypeAdapter(EntryRecord),
    "calls": TypeAdapter(CallRecord),
    "findings": TypeAdapter(FindingRecord),
    "sources": TypeAdapter(SourceRecord),
    "subtasks": TypeAdapter(SubtaskRecord),
    "attached": TypeAdapter(FileRecord),
    "advised": TypeAdapter(str),
    "files": TypeAdapter(str),
}
"""What stands in the arrays, by their names."""


def read_state(written: str, clean: Callable[[str], str]) -> State:
    """The state that the JSON says, with each of its texts cleaned.

    Raises:
        ValueError: it is not JSON, or not that of a state; a name stands twice in an object; a number is too large;
            it has more values than a state; no run could have left its calls like this.
        RecursionError: it is nested too deeply.
    """
    state = State.model_validate(_Reader(written, clean).whole())
    _check_calls(state)
    return state


def _check_calls(state: State) -> None:
    """Refuse calls that no run could have left like this.

    Raises:
        ValueError: calls wait before the end of a conversation or under the same id, a plan has no question or
            waits for nothing, or arguments are not the text of a JSON object.
    """
    waiting = [call.id for call in state.waiting]
    if len(set(waiting)) < len(waiting):
        raise ValueError("two calls wait under one id")
    if state.plan and not (waiting and state.entries and isinstance(state.entries[-1], UserRecord)):
        raise ValueError("a plan without a question, or without a call that waits")
    for entries in state.conversations:
        _check_conversation(entries)


def _check_conversation(entries: tuple[EntryRecord, ...]) -> None:
    rounds = [entry for entry in entries if isinstance(entry, RoundRecord)]
    if any(entry.waiting for entry in rounds if entry is not entries[-1]):
        raise ValueError("a call waits before the end of its conversation")
    for call in in_turns(call for entry in rounds for call in entry.calls):
        parse_object(call.arguments)


def _refuse(_number: str) -> float:
    """No record has a fraction."""
    raise ValueError


_LEAVES = json.JSONDecoder(parse_float=_refuse, parse_constant=_refuse)


class _Reader:
    def __init__(self, written: str, clean: Callable[[str], str]) -> None:
        self._written = written
        self._clean = clean
        self._at = 0
        self._turns = in_turns(range(_MAX_VALUES))

    def whole(self) -> object:
        """The value, and nothing behind it."""
        value = self._value("")
        if self._next():
            raise ValueError
        return value

    def _value(self, name: str) -> object:
        """The value that begins here, under this name."""
        if next(self._turns, None) is None:
            raise ValueError
        match self._next():
            case "{":
                return self._object()
            case "[":
                return self._array(name)
        return self._leaf()

    def _object(self) -> dict[str, object]:
        fields: dict[str, object] = {}
        is_last = self._opens_empty("}")
        while not is_last:
            self._next()
            name = self._leaf()
            if not isinstance(name, str) or name in fields or len(fields) == _MAX_NAMES or self._next() != ":":
                raise ValueError
            self._at += 1
            fields[name] = self._value(name)
            is_last = self._ends("}")
        return fields

    def _array(self, name: str) -> tuple[object, ...]:
        if name not in _ITEMS:
            raise ValueError
        items, is_last = list[object](), self._opens_empty("]")
        while not is_last:
            items.append(_ITEMS[name].validate_python(self._value(""), strict=True))
            is_last = self._ends("]")
        return tuple(items)

    def _leaf(self) -> object:
        if self._written[self._at : self._at + 1] in {"{", "["}:
            raise ValueError
        value, self._at = _LEAVES.raw_decode(self._written, self._at)
        if isinstance(value, int) and abs(value) > _MAX_NUMBER:
            raise ValueError
        return self._clean(value) if isinstance(value, str) else value

    def _next(self) -> str:
        """The next character that is not white space; "" at the end."""
        space = _SPACE.match(self._written, self._at)
        self._at = space.end() if space else self._at
        return self._written[self._at : self._at + 1]

    def _opens_empty(self, bracket: str) -> bool:
        """Pass the opening bracket; whether the closing one follows, which is passed too."""
        self._at += 1
        is_empty = self._next() == bracket
        self._at += is_empty
        return is_empty

    def _ends(self, bracket: str) -> bool:
        """Pass the comma or the bracket behind an item; whether it was the bracket."""
        separator = self._next()
        if separator not in {",", bracket}:
            raise ValueError
        self._at += 1
        return separator == bracket

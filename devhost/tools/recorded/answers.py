"""The recorded answers, found by tool and arguments.

In: recorded calls. Out: for each call of a run the next recorded one of the same tool with the same arguments. Number
types, the order of keys and the addresses of files make no difference. Thread-safe.
"""

import json
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable

from devhost.models.scripted.recorded import RecordedCall
from devhost.plugin.casting import is_file
from devhost.protocol.golang.values import remarshalled
from devhost.protocol.wire import JsonObject

SAME_FILE = ("filename", "size", "type")
"""A file has another address in every run."""
LONGEST = 500
"""Characters of arguments in a sentence."""


class RecordedAnswers:
    def __init__(self, calls: Iterable[RecordedCall], *, once: bool = False) -> None:
        """`once`: each answer serves one call. Otherwise the last one to the same call serves all later ones."""
        self._waiting: dict[str, list[RecordedCall]] = defaultdict(list)
        self._names: Counter[str] = Counter()
        self._once = once
        self._taking = threading.Lock()
        for call in calls:
            self._waiting[_key(call.provider, call.tool, call.arguments)].append(call)
            self._names[call.tool] += 1

    def take(self, provider: str, tool: str, arguments: JsonObject) -> RecordedCall | None:
        with self._taking:
            waiting = self._waiting.get(_key(provider, tool, arguments))
            if not waiting:
                return None
            return waiting.pop(0) if self._once or len(waiting) > 1 else waiting[0]

    def lacks(self, tool: str, arguments: JsonObject) -> str:
        """The sentence about a call that was not recorded."""
        shown = json.dumps(arguments, ensure_ascii=False)
        shown = shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…"
        there_are = self._names[tool]
        others = f"the recording has {there_are} with other arguments" if there_are else "the recording has none"
        return f"this call of {tool} with {shown} was not recorded; {others}"


def _key(provider: str, tool: str, arguments: JsonObject) -> str:
    return json.dumps([provider, tool, _without_addresses(remarshalled(arguments))], sort_keys=True)


def _without_addresses(value: object) -> object:
    if is_file(value):
        return {name: value.get(name) for name in SAME_FILE}
    if isinstance(value, dict):
        return {key: _without_addresses(item) for key, item in value.items()}
    return [_without_addresses(item) for item in value] if isinstance(value, list) else value

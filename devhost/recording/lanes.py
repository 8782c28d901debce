"""Which model calls of a run belong together where a strategy works on several things side by side.

In: the model calls of a run. Out: for a turn, the condition under which a script's model gives it. Calls are of one
lane if the user messages of one begin with those of the other; the order of lanes may differ from run to run, so each
lane's turns ask for a line that only its prompts have.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from devhost.protocol.wire import JsonObject
from devhost.trace.calls import Call

LONGEST_LINE = 300
"""Characters; a longer line would hide the turn."""


@dataclass
class _Lane:
    asked: list[str]
    """The user messages of its longest prompt."""
    calls: list[str] = field(default_factory=list)
    """Their ids."""

    def takes(self, asked: list[str]) -> bool:
        shorter, longer = sorted((self.asked, asked), key=len)
        return longer[: len(shorter)] == shorter and bool(shorter) == bool(longer)


class Lanes:
    def __init__(self, calls: Sequence[Call]) -> None:
        self._lanes: list[_Lane] = []
        for call in calls:
            asked = _user_messages(call)
            lane = next((lane for lane in self._lanes if lane.takes(asked)), None)
            if lane is None:
                lane = _Lane(asked)
                self._lanes.append(lane)
            lane.asked = max(lane.asked, asked, key=len)
            lane.calls.append(call.id)

    def condition(self, call: Call) -> JsonObject:
        """Empty in a run with one lane, and where a lane has no line of its own."""
        if len(self._lanes) == 1:
            return {}
        (own,) = [lane for lane in self._lanes if call.id in lane.calls]
        others = [message for lane in self._lanes if lane is not own for message in lane.asked]
        for line in (line.strip() for message in _user_messages(call) for line in message.splitlines()):
            if line and len(line) <= LONGEST_LINE and not any(line in message for message in others):
                return {"when_asked": line}
        return {}


def _user_messages(call: Call) -> list[str]:
    messages = call.request.get("prompt_messages")
    listed = [message for message in messages if isinstance(message, dict)] if isinstance(messages, list) else []
    return [_words(message.get("content")) for message in listed if message.get("role") == "user"]


def _words(content: object) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("data")) for part in content if isinstance(part, dict) and "data" in part)
    return str(content or "")

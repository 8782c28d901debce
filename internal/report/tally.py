"""What a run has cost and done so far.

In: the events of a run. Out: the same events; usage, tool rounds and, where the run puts them out, thoughts are
collected on the way.
"""

from collections.abc import Generator, Iterable
from dataclasses import dataclass, field

from internal.report.events import CallsAnswered, Event, FileForwarded, ModelFinished, SpanStarted, Thought
from internal.report.usage import Usage


@dataclass
class Tally:
    """What a run has cost and done so far, read from its events, so that a loop that is given up still counts."""

    keeps_thoughts: bool = False
    usage: Usage = field(default_factory=Usage)
    tool_rounds: list[CallsAnswered] = field(default_factory=list)
    rounds: int = 0
    files: int = 0
    """Files that the user has got."""
    thoughts: list[Thought] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict, init=False)
    """What the rows at the top work on, by their keys: the names of subtasks."""

    def watch(self, events: Iterable[Event]) -> Generator[Event, None, None]:
        for event in events:
            if isinstance(event, ModelFinished):
                self.usage += event.usage
                self._think(event)
            elif isinstance(event, CallsAnswered):
                self.tool_rounds.append(event)
            elif isinstance(event, FileForwarded):
                self.files += 1
            elif isinstance(event, SpanStarted):
                self.rounds += event.is_round
                self._names |= {event.key: event.about} if event.about else {}
            yield event

    def _think(self, turn: ModelFinished) -> None:
        if self.keeps_thoughts and turn.thought.strip():
            name = self._names.get(turn.key.partition(".")[0], "")
            self.thoughts.append(Thought(turn.round, turn.thought, name))

"""What a run has cost and done so far.

In: the events of a run. Out: the same events; usage and tool rounds are added up on the way.
"""

from collections.abc import Generator, Iterable
from dataclasses import dataclass, field

from internal.report.events import CallsAnswered, Event, FileForwarded, ModelFinished
from internal.report.usage import Usage


@dataclass
class Tally:
    """What a run has cost and done so far, read from its events, so that a loop that is given up still counts."""

    usage: Usage = field(default_factory=Usage)
    tool_rounds: list[CallsAnswered] = field(default_factory=list)
    files: int = 0
    """Files that the user has got."""

    def watch(self, events: Iterable[Event]) -> Generator[Event, None, None]:
        for event in events:
            if isinstance(event, ModelFinished):
                self.usage += event.usage
            elif isinstance(event, CallsAnswered):
                self.tool_rounds.append(event)
            elif isinstance(event, FileForwarded):
                self.files += 1
            yield event

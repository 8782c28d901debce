"""The tools of a fork: they answer from the recording, or run.

In: the recorded tools and calls of a run. Out: tools for its fork. A tool that may run still answers the calls of the
past from the recording: they were made, and are not made twice.
"""

from collections.abc import Iterator, Sequence

from devhost.models.scripted.recorded import Recorded
from devhost.process.session import Answer
from devhost.protocol.wire import JsonObject
from devhost.tools.recorded.answers import RecordedAnswers
from devhost.tools.recorded.tool import recorded_tools, replayed
from devhost.tools.tool import Tool


class LiveTool:
    """A tool of a plugin, behind the recorded calls of the past."""

    def __init__(self, tool: Tool, past: RecordedAnswers, ran: list[JsonObject]) -> None:
        """`ran` gets the name and the arguments of each call that runs."""
        self.provider, self.name, self.entity = tool.provider, tool.name, tool.entity
        self._tool = tool
        self._past = past
        self._ran = ran

    def invoke(self, parameters: JsonObject, answer: Answer, request_id: str, /) -> Iterator[JsonObject]:
        recorded = self._past.take(self.provider, self.name, parameters)
        if recorded is not None:
            yield from replayed(recorded)
            return
        self._ran.append({"tool": self.name, "arguments": parameters})
        yield from self._tool.invoke(parameters, answer, request_id)


def fork_tools(recorded: Recorded, past_calls: int, live: Sequence[Tool], ran: list[JsonObject]) -> list[Tool]:
    """`past_calls`: how many of the recorded calls belong to the past. `live`: tools that may run."""
    past = RecordedAnswers(recorded.calls[:past_calls], once=True)
    running = [LiveTool(tool, past, ran) for tool in live]
    return [*running, *recorded_tools(recorded, instead=live)]

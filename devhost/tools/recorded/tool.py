"""A tool that answers from a recording.

In: its recorded declaration and answers. Out: the recorded messages; files are sent as bytes, so that they become
files of this run.
"""

import base64
from collections.abc import Iterator, Sequence

from devhost.errors import InvocationError, RefusedCallError
from devhost.models.scripted.recorded import Recorded, RecordedCall, RecordedPart
from devhost.process.session import Answer
from devhost.protocol.wire import JsonObject
from devhost.tools.recorded.answers import RecordedAnswers
from devhost.tools.tool import Tool

NOT_RECORDED = "NotRecordedError"


class RecordedTool:
    def __init__(self, entity: JsonObject, answers: RecordedAnswers) -> None:
        identity = entity["identity"]
        self.provider, self.name = str(identity["provider"]), str(identity["name"])
        self.entity = entity
        self._answers = answers

    def invoke(self, parameters: JsonObject, _answer: Answer, _request_id: str, /) -> Iterator[JsonObject]:
        """InvocationError, as for an exception of a tool, if the call was not recorded."""
        recorded = self._answers.take(self.provider, self.name, parameters)
        if recorded is None:
            raise InvocationError(NOT_RECORDED, self._answers.lacks(self.name, parameters))
        yield from replayed(recorded)


def replayed(recorded: RecordedCall) -> Iterator[JsonObject]:
    """The messages of the answer; RefusedCallError, whose words reach the plugin unchanged, if the call failed."""
    yield from map(_message, recorded.answer)
    if recorded.error is not None:
        raise RefusedCallError(recorded.error)


def recorded_tools(recorded: Recorded | None, instead: Sequence[Tool] = ()) -> list[Tool]:
    """Those that `instead` does not have."""
    if recorded is None:
        return []
    answers = RecordedAnswers(recorded.calls)
    taken = {(tool.provider, tool.name) for tool in instead}
    tools = [RecordedTool(entity, answers) for entity in recorded.tools]
    return [tool for tool in tools if (tool.provider, tool.name) not in taken]


def _message(part: RecordedPart) -> JsonObject:
    if part.text is not None:
        return {"type": "text", "message": {"text": part.text}, "meta": None}
    if part.json_ is not None:
        return {"type": "json", "message": {"json_object": part.json_}, "meta": None}
    if part.file is not None:
        data = base64.b64encode(part.file.read_bytes()).decode()
        return {"type": "blob", "message": {"blob": data}, "meta": part.meta}
    return dict(part.message or {})

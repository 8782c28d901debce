"""Tools that answer from a recording, without a plugin."""

import base64
import json
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from devhost.errors import InvocationError, RefusedCallError
from devhost.golang import remarshalled
from devhost.models.scripted.script import RecordedCall, RecordedPart, RecordedRequest
from devhost.plugin.casting import is_file
from devhost.process.session import Answer
from devhost.protocol.wire import JsonObject
from devhost.text import read_file
from devhost.tools.entity import filled
from devhost.tools.tool import Tool, blob_message, json_message, text_message


class RecordedAnswers:
    """Recorded answers by tool and arguments.

    Number types, the order of keys and the addresses of files make no difference. The class is thread-safe.
    """

    def __init__(self, calls: Iterable[RecordedCall], *, once: bool = False) -> None:
        """With `once`, each answer is used only once. Otherwise, repeated calls get the last answer again."""
        self._waiting: dict[str, list[RecordedCall]] = defaultdict(list)
        self._names: Counter[str] = Counter()
        self._once = once
        self._taking = threading.Lock()
        for call in calls:
            self._waiting[_key(call.provider, call.tool, call.arguments)].append(call)
            self._names[call.tool] += 1

    def next_call(self, provider: str, tool: str, arguments: JsonObject) -> RecordedCall | None:
        with self._taking:
            waiting = self._waiting.get(_key(provider, tool, arguments))
            if not waiting:
                return None
            if self._once or len(waiting) > 1:
                return waiting.pop(0)
            return waiting[0]

    def lacks(self, tool: str, arguments: JsonObject) -> str:
        """Returns the error message for a call that was not recorded."""
        there_are = self._names[tool]
        others = "the recording has none"
        if there_are:
            others = f"the recording has {there_are} with other arguments"
        shown = json.dumps(arguments, ensure_ascii=False)
        return f"this call of {tool} with {shown} was not recorded; {others}"


def _key(provider: str, tool: str, arguments: JsonObject) -> str:
    return json.dumps([provider, tool, _without_addresses(remarshalled(arguments))], sort_keys=True)


def _without_addresses(value: object) -> object:
    if is_file(value):  # its address differs in every run
        return {name: value.get(name) for name in ("filename", "size", "type")}
    if isinstance(value, dict):
        return {key: _without_addresses(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_addresses(item) for item in value]
    return value


MOST_BYTES = 100 * 1024 * 1024
"""The maximum size in bytes of a file that a recorded tool created. The daemon accepts 15 MiB at once."""
NOT_RECORDED = "NotRecordedError"


class RecordedTool:
    def __init__(self, entity: JsonObject, answers: RecordedAnswers, beyond: Tool | None = None) -> None:
        """Creates the tool. `beyond` answers calls that were not recorded."""
        identity = entity["identity"]
        self.provider = str(identity["provider"])
        self.name = str(identity["name"])
        self.entity = entity
        self._answers = answers
        self._beyond = beyond

    def invoke(self, parameters: JsonObject, answer: Answer, request_id: str, /) -> Iterator[JsonObject]:
        """Yields the recorded messages.

        Raises `InvocationError` for a call that was not recorded, as for an exception of a tool. Raises
        `RefusedCallError`, whose text reaches the plugin unchanged, for a call that failed when it was recorded.
        """
        recorded = self._answers.next_call(self.provider, self.name, parameters)
        if recorded is not None:
            yield from map(message_of, recorded.answer)
            if recorded.error is not None:
                raise RefusedCallError(recorded.error)
        elif self._beyond is not None:
            yield from self._beyond.invoke(parameters, answer, request_id)
        else:
            raise InvocationError(NOT_RECORDED, self._answers.lacks(self.name, parameters))


def recorded_tools(recorded: RecordedRequest, instead: Sequence[Tool] = ()) -> list[Tool]:
    """Returns the recorded tools, except those that `instead` has."""
    answers = RecordedAnswers(recorded.calls)
    taken = {(tool.provider, tool.name) for tool in instead}
    tools = [RecordedTool(filled(entity), answers) for entity in recorded.tools]
    return [tool for tool in tools if (tool.provider, tool.name) not in taken]


def message_of(part: RecordedPart) -> JsonObject:
    if part.text is not None:
        return text_message(part.text)
    if part.json_ is not None:
        return json_message(part.json_)
    if part.file is not None:
        return blob_message(base64.b64encode(read_file(part.file, MOST_BYTES)).decode(), part.meta)
    return dict(part.message or {})

"""The API of Dify that a daemon calls back: model calls and tool calls, answered by a simple rule.

A request that ends with a user message is answered with a call of the first offered tool, and any other request with a
streamed text. Tool calls are counted by their arguments, so that repeated calls are noticed.
"""

import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import gevent
from pydantic_core import from_json, to_json

from benchmarks.answers import Json
from benchmarks.scenario import PROSE, chunks
from tests.support.wire import calls, says, text_message

HEADER_SIZE = 10
MAGIC = 0x0F
HEADING = "# Answer\n\n"
ASKED = "asked"
"""The argument of the tool, whose value is the text of the user's message, so that each run makes a different call."""

type StartResponse = Callable[[str, list[tuple[str, str]]], object]


def framed(payload: bytes) -> bytes:
    """Return a message as Dify's API streams it: 4 bytes, 10 bytes that start with the length, and the payload."""
    return struct.pack("<BBHI6x", MAGIC, 0, HEADER_SIZE, len(payload)) + payload


@dataclass(frozen=True)
class Pace:
    """The response times of models and tools in seconds."""

    before_call: float = 0.2
    tool: float = 0.1
    before_text: float = 0.2
    between_chunks: float = 0.02
    chunks: int = 100


@dataclass
class InnerApi:
    """A WSGI application that answers and counts the calls."""

    pace: Pace = field(default_factory=Pace)
    model_calls: int = 0
    ran: Counter[str] = field(default_factory=Counter)
    """The number of times that the tool ran, by the text of the user's message."""

    def __post_init__(self) -> None:
        self._text = [_data(chunk) for chunk in answer(self.pace)]
        self._found = [_data(text_message(PROSE))]

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterator[bytes]:
        request: Json = from_json(environ["wsgi.input"].read())
        if environ["PATH_INFO"] == "/inner/api/invoke/llm":
            messages = self._model(request)
        elif environ["PATH_INFO"] == "/inner/api/invoke/tool":
            messages = self._tool(request)
        else:
            start_response("404 Not Found", [])
            return iter(())
        start_response("200 OK", [("Content-Type", "application/octet-stream")])
        return messages

    def _model(self, request: Json) -> Iterator[bytes]:
        self.model_calls += 1
        last = request["prompt_messages"][-1]
        if last["role"] == "user" and request["tools"]:
            gevent.sleep(self.pace.before_call)
            name = request["tools"][0]["name"]
            yield from map(_data, calls((name, {ASKED: question_in(last["content"])})))
            return
        gevent.sleep(self.pace.before_text)
        for chunk in self._text:
            yield chunk
            gevent.sleep(self.pace.between_chunks)

    def _tool(self, request: Json) -> Iterator[bytes]:
        self.ran[str(request["tool_parameters"].get(ASKED))] += 1
        gevent.sleep(self.pace.tool)
        yield from self._found


def question_in(content: str | Sequence[Json]) -> str:
    """Return the last line of a user message, whose content is a text or a list of parts."""
    text = content
    if not isinstance(text, str):
        text = "".join(part["data"] for part in text if part["type"] == "text")
    return text.strip().rpartition("\n")[2]


def _data(message: object) -> bytes:
    return framed(b'{"error":"","data":%b}' % to_json(message))


def answer(pace: Pace) -> list[Any]:
    """Return the chunks of an answer with a heading, so that its text is shown as it streams (docs/strategies.md)."""
    return [*says(HEADING)[:-1], *chunks(pace.chunks)]


def text_of(pace: Pace) -> str:
    """Return the complete answer that the user should read."""
    return "".join(from_json(to_json(chunk))["delta"]["message"]["content"] for chunk in answer(pace))

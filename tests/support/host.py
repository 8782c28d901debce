"""The host's side of the SDK's own Session, in this process: a scripted model and tools that are Python functions.

In: what each model call and tool call should bring. Out: a real Session over a real reader and writer; everything that
crosses them is JSON, as on the wire, and every request is kept.
"""

import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import gevent
from dify_plugin.config.config import InstallMethod
from dify_plugin.core.entities.plugin.io import PluginInStream, PluginInStreamEvent
from dify_plugin.core.runtime import Session
from dify_plugin.core.server.__base.request_reader import RequestReader
from dify_plugin.core.server.__base.response_writer import ResponseWriter

from tests.support.strict_reader import READER

type Json = dict[str, Any]
type Handler = Callable[[Json], Iterable[Json]]
type Turn = Sequence[Json | CallFails | Callable[[], None]]


class CallFails(Exception):  # noqa: N818 - says what the host does
    """Raised by a handler: the call ends in this error, worded as the host words it."""


@dataclass(frozen=True)
class When:
    """A turn that answers only a prompt whose last message contains this text: calls of parallel loops interleave."""

    text: str
    turn: Turn


type Step = Sequence[Any] | When
"""One turn of a script."""


@dataclass
class ScriptedModel:
    """Answers model calls in order; an unscripted call is an error, and a step left over fails the test."""

    steps: Sequence[Step]
    requests: list[Json] = field(default_factory=list)
    unscripted: list[Json] = field(default_factory=list)
    """The last messages of calls that no step was meant for."""

    def __call__(self, request: Json) -> Iterator[Json]:
        self.requests.append(request)
        for item in self._take_turn(request["prompt_messages"][-1]):
            if isinstance(item, CallFails):
                raise item
            if callable(item):
                gevent.idle()  # the plugin has read all that was sent before, however slow the machine is
                item()
            else:
                yield item

    def _take_turn(self, last_message: Json) -> Turn:
        """The first step that fits."""
        for position, step in enumerate(self.steps):
            if not isinstance(step, When) or step.text in text_of(last_message):
                self.steps = [*self.steps[:position], *self.steps[position + 1 :]]
                if isinstance(step, When):
                    return step.turn
                return step
        self.unscripted.append(last_message)
        raise CallFails(f"unscripted model call {len(self.requests)}")

    @property
    def prompts(self) -> list[list[Json]]:
        """The messages of every request, in order."""
        return [request["prompt_messages"] for request in self.requests]


def text_of(message: Json) -> str:
    """The text of a prompt message, whatever else it carries."""
    content = message["content"]
    if isinstance(content, str):
        return content
    return "\n".join(part.get("data") or "" for part in content)


@dataclass
class Tools:
    """Answers tool calls by name; every request is kept."""

    handlers: Mapping[str, Handler]
    requests: list[Json] = field(default_factory=list)

    def __call__(self, request: Json) -> Iterable[Json]:
        self.requests.append(request)
        return self.handlers[request["tool"]](request)


class HostTransport(RequestReader, ResponseWriter):
    """Both ends of the SDK's transport: requests are answered in greenlets, as a host answers from elsewhere."""

    def __init__(self, model: Handler, tools: Handler) -> None:
        super().__init__()
        self._handlers = {"llm": model, "tool": tools}
        self.longest_line = 0
        self.request_ids: list[str] = []
        """Of every request, in order."""

    def _read_stream(self) -> Generator[PluginInStream, None, None]:
        yield from ()

    def done(self) -> None:
        """A transport of one session has nothing to end."""

    def write(self, data: str) -> None:
        self.longest_line = max(self.longest_line, len(data.encode()))
        if data.strip():
            message = json.loads(data)
            asked = message["data"]["data"]
            self.request_ids.append(asked["backwards_request_id"])
            gevent.spawn(self._answer, message["session_id"], asked["backwards_request_id"], asked)

    def _answer(self, session_id: str, request_id: str, asked: Json) -> None:
        def respond(event: str, message: str = "", data: Json | None = None) -> None:
            body = {"backwards_request_id": request_id, "event": event, "message": message, "data": data}
            arriving = PluginInStreamEvent.BackwardInvocationResponse
            self._process_line(PluginInStream(session_id, arriving, json.loads(json.dumps(body)), self, self))

        try:
            for item in self._handlers[asked["type"]](asked["request"]):
                respond("response", data=item)
                gevent.sleep(0)
        except CallFails as failure:
            respond("error", message=str(failure))
        else:
            respond("end")


def make_session(model: Handler, tools: Handler, *, is_read: bool = True) -> tuple[Session, HostTransport]:
    """`is_read`: whether the model's requests have to keep the rules of all providers."""
    if is_read:
        model = READER.reads(model)
    transport = HostTransport(model, tools)
    session = Session(
        session_id="session-1",
        executor=ThreadPoolExecutor(max_workers=1),
        reader=transport,
        writer=transport,
        install_method=InstallMethod.Local,
    )
    return session, transport

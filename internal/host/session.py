"""Calls models and tools through the SDK's session. Only this module uses the session."""

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from secrets import token_hex
from typing import Any, Protocol, cast

import gevent
from dify_plugin.core.entities.invocation import InvokeType
from dify_plugin.core.runtime import BackwardsInvocation, Session
from dify_plugin.entities.model.llm import LLMModelConfig, LLMResultChunk
from dify_plugin.entities.model.message import (
    AssistantPromptMessage,
    MultiModalPromptMessageContent,
    PromptMessage,
    PromptMessageTool,
    TextPromptMessageContent,
)
from dify_plugin.entities.tool import ToolProviderType
from dify_plugin.invocations.model.llm import LLMInvocation
from dify_plugin.invocations.tool import ToolInvocation
from gevent.lock import BoundedSemaphore
from gevent.queue import Empty, Queue
from pydantic import BaseModel, model_validator

from internal.clock import in_turns, let_others_through
from internal.host.failures import HostFailure
from internal.text.texts import wellformed, wellformed_json

MAX_LINE_BYTES = 4 * 1024 * 1024
"""Maximum bytes of a line on stdout. The daemon kills a plugin whose line exceeds 5 MiB: docs/host-facts.md, "Size
limits"."""
MAX_ENVELOPE_BYTES = 16 * 1024
"""Bytes that are reserved in a line for ids, names and types."""
MAX_REQUEST_BYTES = MAX_LINE_BYTES - MAX_ENVELOPE_BYTES
"""Maximum bytes of JSON for the prompt of a model call or the parameters of a tool call."""


@dataclass(frozen=True)
class ModelRequest:
    """The content of one model call."""

    config: LLMModelConfig
    messages: Sequence[PromptMessage]
    tools: Sequence[PromptMessageTool] = ()
    stop: Sequence[str] = ()


def without_opaque_body(message: PromptMessage) -> PromptMessage:
    """Return a copy without opaque bodies, or the message itself if it has none."""
    nothing: dict[str, Any] = {"opaque_body": None}
    changes = {}
    if isinstance(message, AssistantPromptMessage) and message.opaque_body is not None:
        changes = nothing
    if isinstance(message.content, list) and any(part.opaque_body is not None for part in message.content):
        changes = {**changes, "content": [part.model_copy(update=nothing) for part in message.content]}
    if changes:
        return message.model_copy(update=changes)
    return message


class WireMessage(BaseModel):
    """A message of a tool in the form that the daemon guarantees (docs/host-facts.md, "Tool messages")."""

    type: str
    message: dict[str, Any] | None = None
    meta: dict[str, Any] | None = None


def wellformed_message(message: WireMessage) -> WireMessage:
    """Return the message with well-formed texts; the message itself if they already are."""
    body = wellformed_json(message.message)
    meta = wellformed_json(message.meta)
    if body is message.message and meta is message.meta:
        return message
    return WireMessage(type=message.type, message=body, meta=meta)


def wellformed_chunk(chunk: LLMResultChunk) -> LLMResultChunk:
    """Make the texts of a model's chunk well-formed, in place. Arguments and opaque bodies stay unchanged."""
    delta = chunk.delta
    message = chunk.delta.message
    if isinstance(message.content, str):
        _clean(message, "content")
    elif message.content:
        for part in in_turns(message.content):
            is_text = isinstance(part, TextPromptMessageContent)
            _clean(part, *(("data",) if is_text else ("format", "mime_type", "filename", "url", "base64_data")))
    for call in in_turns(message.tool_calls or ()):
        _clean(call, "id")
        _clean(call.function, "name")
    if delta.finish_reason:
        _clean(delta, "finish_reason")
    if delta.usage:
        _clean(delta.usage, "currency")
    return chunk


def _clean(of_the_sdk: BaseModel, *names: str) -> None:
    for name in names:
        text = getattr(of_the_sdk, name)
        if (clean := wellformed(text)) is not text:  # assigning a field of the SDK's models is slow
            setattr(of_the_sdk, name, clean)


MAX_WAITING = 250
"""Maximum number of items that are read ahead: about as many short lines as the SDK reads at once (64 KiB)."""


class DeadlinePassed(Exception):  # noqa: N818 - the name says what happened
    """Raised when the time limit of a call has passed."""


@dataclass(frozen=True)
class _End:
    """The end marker after the last item."""

    failure: str | None = None


def batches[T](items: Generator[T, None, None], left: Callable[[], float], silence: float) -> Iterator[list[T]]:
    """Yield the available items in batches, as soon as there is at least one.

    A greenlet reads ahead while the run works on the previous batch, so that a burst costs only a few steps. ``left``
    returns the seconds until the deadline. If none are left, the call is not made. Items that arrived before the
    deadline are still yielded. ``silence`` is the maximum number of seconds without an item. Heartbeats of the HTTP
    transport extend only the SDK's own limit, not these two.

    Raises ``HostFailure`` if the call failed or was silent for too long, and ``DeadlinePassed`` if no time is left.
    """
    inbox: Queue[T | _End] = Queue(MAX_WAITING)
    reader = gevent.spawn(_read, items, inbox)
    try:
        while (seconds := left()) > 0 or inbox.qsize():
            try:
                came = [inbox.get(timeout=min(seconds, silence))]
            except Empty:
                if silence < seconds:
                    raise HostFailure(f"invocation exited without response after {silence:g} seconds") from None
                break
            came += [inbox.get_nowait() for _ in range(inbox.qsize())]
            if batch := [item for item in came if not isinstance(item, _End)]:
                yield batch
            if isinstance(end := came[-1], _End):
                if end.failure is None:
                    return
                if left() > 0:
                    raise _failure(end.failure)
                break
            if seconds <= 0 and left() <= 0:  # the last batch may have extended the deadline
                break
        raise DeadlinePassed
    finally:
        # A run that is not read to its end may be garbage-collected while gevent's hub runs, which must not block.
        reader.kill(block=False)


_LONG_FAILURE = 2_000
"""Length in characters of an error that takes noticeable time to parse."""
_READING_A_FAILURE = BoundedSemaphore(1)


def _failure(said: str) -> HostFailure:
    """Parse an error. Long errors are parsed one at a time, because the calls of a round often fail together."""
    if len(said) < _LONG_FAILURE:
        return HostFailure(said)
    with _READING_A_FAILURE:
        failure = HostFailure(said)
        let_others_through()
        return failure


def _read[T](items: Generator[T, None, None], inbox: "Queue[T | _End]") -> None:
    """Put all items into the inbox, and finally a marker of how they ended."""
    end = _End()
    try:
        for item in in_turns(items):
            inbox.put(item)
    except Exception as failure:  # noqa: BLE001 - the SDK reports every failure of the host as a bare ``Exception``
        end = _End(wellformed(str(failure)))
    finally:
        items.close()
    inbox.put(end)


def new_request_id() -> str:
    return token_hex(16)


def _sent_under[I: BackwardsInvocation[Any]](request_id: str, invocation: I) -> I:
    """Return an SDK invocation that uses an id which the log knows in advance.

    The SDK requests the id once for each request (``BackwardsInvocation._backwards_invoke``, 0.4.4 to 0.10.2). A
    version that does not would send a different id than the one in the log.
    """
    vars(invocation)["_generate_backwards_request_id"] = lambda: request_id
    return invocation


MAX_ENTRIES = 1_024
"""Maximum number of tool-call entries that are read from one chunk. A turn may have fewer calls (docs/limits.md)."""


class _Chunk(LLMResultChunk):
    """A chunk of a model with a limited number of tool calls. The SDK would need seconds for very many calls."""

    @model_validator(mode="before")
    @classmethod
    def _limit_calls(cls, given: Any) -> Any:  # noqa: ANN401 - the host's data
        with suppress(KeyError, TypeError):
            del given["delta"]["message"]["tool_calls"][MAX_ENTRIES:]
        return given


class _ModelInvocation(LLMInvocation):
    """One call of a model."""

    def _backwards_invoke(self, type: InvokeType, data_type: Any, data: dict[str, Any]) -> Any:  # noqa: A002, ANN401
        del data_type
        return super()._backwards_invoke(type, _Chunk, data)

    def stream(self, request: ModelRequest) -> Generator[LLMResultChunk, None, None]:
        """Call the model like the SDK's ``invoke``, which would double the cost by converting messages to dictionaries.

        The call always streams, because the SDK's blocking form loses ``opaque_body`` and all but the last tool calls
        (0.10.2).
        """
        data = {
            **request.config.model_dump(),
            "prompt_messages": list(request.messages),
            "tools": list(request.tools) or None,
            "stop": list(request.stop),
            "stream": True,
        }
        answer: Generator[LLMResultChunk, None, None] = self._backwards_invoke(InvokeType.LLM, LLMResultChunk, data)
        return answer


MAX_PICTURES_READ = 24 * 1024 * 1024
"""Maximum characters of base64 media that are read in one turn. A file of the maximum size takes 20 MiB."""


def with_few_media(chunks: Generator[LLMResultChunk, None, None]) -> Generator[LLMResultChunk, None, None]:
    """Yield the chunks of a turn as they arrive. Media beyond ``MAX_PICTURES_READ`` lose their content."""
    length = 0
    with closing(chunks):
        for chunk in chunks:
            content = chunk.delta.message.content
            if isinstance(content, list):
                length = _within(MAX_PICTURES_READ, length, content)
            yield chunk


def _within(most: int, length: int, parts: Iterable[object]) -> int:
    """Return the length of all media including these parts. Parts beyond the maximum lose their content."""
    for part in parts:
        if not isinstance(part, MultiModalPromptMessageContent):
            continue
        added = len(part.base64_data) + len(part.url)
        if length + added > most:
            part.base64_data = ""
            part.url = ""
        else:
            length += added
    return length


class _ToolInvocation(ToolInvocation):
    """One call of a tool that accepts messages of any type. An unknown type would end the SDK's own generator."""

    def _backwards_invoke(self, type: InvokeType, data_type: Any, data: dict[str, Any]) -> Any:  # noqa: A002, ANN401
        del data_type
        return super()._backwards_invoke(type, WireMessage, data)  # type: ignore[arg-type] # what this class is for


class HostTool(Protocol):
    """The properties with which the host finds a tool."""

    @property
    def own_name(self) -> str: ...
    @property
    def provider(self) -> str: ...
    @property
    def provider_type(self) -> ToolProviderType: ...
    @property
    def credential_id(self) -> str | None: ...


class HostSession:
    """Calls back to the host on behalf of one run."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._longest_silence: float = session.max_invocation_timeout
        """Maximum seconds of silence: MAX_INVOCATION_TIMEOUT at the start of the run. The session's own value changes
        with each call."""

    def stream_model(
        self, request: ModelRequest, request_id: str, left: Callable[[], float], most: float
    ) -> Iterator[list[LLMResultChunk]]:
        """Call the model and yield the available chunks in batches. Raises the same errors as ``batches``.

        ``left`` returns the seconds left for the next chunk. ``most`` is the time limit of a call that has started to
        answer.
        """
        self._bound_silence(most)
        answer = _sent_under(request_id, _ModelInvocation(self._session)).stream(request)
        for batch in batches(with_few_media(answer), left, self._longest_silence):
            yield [wellformed_chunk(chunk) for chunk in batch]

    def invoke_tool(
        self, tool: HostTool, parameters: Mapping[str, Any], request_id: str, left: Callable[[], float]
    ) -> Iterator[WireMessage]:
        """Call a tool with at most ``MAX_REQUEST_BYTES`` of JSON parameters. Raises the same errors as ``batches``."""
        self._bound_silence(left())
        messages = _sent_under(request_id, _ToolInvocation(self._session)).invoke(
            tool.provider_type, tool.provider, tool.own_name, dict(parameters), credential_id=tool.credential_id
        )
        read = cast("Generator[WireMessage, None, None]", messages)
        for batch in batches(read, left, self._longest_silence):
            yield from map(wellformed_message, batch)

    def _bound_silence(self, most: float) -> None:
        """Set the SDK's own limit on silence, in whole seconds, for every call that starts afterwards."""
        self._session.max_invocation_timeout = max(1, math.ceil(min(most, self._longest_silence)))

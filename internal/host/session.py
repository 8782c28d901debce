"""The only module that calls the SDK's Session.

In: requests of the agent. Out: the model's chunks and the tools' messages, each bounded in silence and in time. A call
that fails raises HostFailure, DeadlinePassed or RequestTooLarge. Each call sets the session's limit on silence; nothing
else is kept from one call to the next.
"""

import math
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any, Protocol, cast

from dify_plugin.core.runtime import Session
from dify_plugin.entities.model.llm import LLMResult, LLMResultChunk, LLMResultChunkDelta
from dify_plugin.entities.tool import ToolProviderType
from pydantic_core import to_json

from internal.flow import extract_blocking_tool_calls
from internal.host.invocations import LenientToolInvocation, ModelInvocation
from internal.host.read_ahead import batches
from internal.host.request import MAX_REQUEST_BYTES, ModelRequest
from internal.host.wire import WireMessage, wellformed_chunk, wellformed_message
from internal.text.fairness import in_turns


class RequestTooLarge(Exception):  # noqa: N818 - says what is the matter
    """The request would be a line at which the daemon kills the plugin."""


class HostTool(Protocol):
    """What the host needs to find a tool."""

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
        """Seconds, as MAX_INVOCATION_TIMEOUT was when the run began; the session's own value changes with each call."""

    def stream_model(
        self, request: ModelRequest, request_id: str, left: Callable[[], float], most: float
    ) -> Iterator[list[LLMResultChunk]]:
        """Call the model, and bring all chunks that wait at once; a result that comes in one piece is one chunk.

        The request is sent under ``request_id``, a new one for each call. ``left`` tells the seconds left for the next
        chunk, ``most`` those that a call may take once it answers.
        Always streaming: the SDK's blocking form loses ``opaque_body`` and all but the last tool calls (0.10.2).

        Raises:
            HostFailure: the call failed, before the first chunk or after any.
            DeadlinePassed: while waiting for the next chunk.
        """
        self._bound_silence(most)
        answer = ModelInvocation(self._session, request_id).invoke(
            model_config=request.config,
            prompt_messages=list(request.messages),
            tools=list(request.tools),
            stop=list(request.stop),
            stream=True,
        )
        if isinstance(answer, LLMResult):
            yield [wellformed_chunk(_as_chunk(answer))]
        else:
            for batch in batches(answer, left, self._longest_silence):
                yield [wellformed_chunk(chunk) for chunk in batch]

    def invoke_tool(
        self, tool: HostTool, parameters: Mapping[str, Any], request_id: str, left: Callable[[], float]
    ) -> Iterator[WireMessage]:
        """Call a tool with its own credential, under ``request_id``, a new one for each call.

        Raises:
            HostFailure: the tool or the host failed.
            DeadlinePassed: while waiting for the next message.
            RequestTooLarge: the request was not sent.
        """
        size = len(to_json(parameters))
        if size > MAX_REQUEST_BYTES:
            raise RequestTooLarge(f"the parameters have {size:,} bytes; at most {MAX_REQUEST_BYTES:,} reach the host")
        self._bound_silence(left())
        messages = LenientToolInvocation(self._session, request_id).invoke(
            tool.provider_type, tool.provider, tool.own_name, dict(parameters), credential_id=tool.credential_id
        )
        read = cast("Generator[WireMessage, None, None]", messages)
        for batch in in_turns(batches(read, left, self._longest_silence)):  # the SDK has just parsed it
            yield from map(wellformed_message, batch)

    def _bound_silence(self, most: float) -> None:
        """Set the SDK's own limit on silence, which calls that start later obey, in whole seconds."""
        self._session.max_invocation_timeout = max(1, math.ceil(min(most, self._longest_silence)))


def _as_chunk(result: LLMResult) -> LLMResultChunk:
    message = result.message.model_copy(update={"tool_calls": extract_blocking_tool_calls(result)})
    return LLMResultChunk(model=result.model, delta=LLMResultChunkDelta(index=0, message=message, usage=result.usage))

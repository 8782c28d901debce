"""The messages of a strategy or a tool as the daemon decodes them on their way from the plugin.

In: what a plugin streamed. Out: what is passed on, or `InvocationError` with the daemon's error, which ends it.
"""

from collections.abc import Callable
from typing import Any

from devhost.errors import InvocationError
from devhost.protocol import answers
from devhost.protocol.golang.decode import GoDecodeError
from devhost.protocol.golang.values import NumberRangeError
from devhost.protocol.wire import JsonObject


def agent_message(said: Any) -> JsonObject:  # noqa: ANN401 - any value that the plugin streamed
    return _read(answers.agent_message, said)


def tool_message(said: Any) -> JsonObject:  # noqa: ANN401 - as above
    return _read(answers.tool_message, said)


def _read(decoded: Callable[[Any], JsonObject], said: Any) -> JsonObject:  # noqa: ANN401 - as above
    try:
        return decoded(said)
    except (GoDecodeError, NumberRangeError) as error:
        raise InvocationError("unmarshal_error", f"unmarshal json failed: {error}") from error

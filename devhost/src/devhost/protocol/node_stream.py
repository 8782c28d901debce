"""What the Agent node reads of a run from the daemon: an envelope for each message or failure."""

from collections.abc import Callable
from typing import Any

from devhost.errors import InvocationError, RunFailure, RunTimeoutError
from devhost.golang import NumberRangeError, marshalled, remarshalled
from devhost.protocol import structs
from devhost.protocol.wire import JsonObject

FAILED = -500


def passed_on(message: JsonObject) -> JsonObject:
    return {"code": 0, "message": "success", "data": message}


def failed(failure: RunFailure) -> JsonObject:
    """The daemon's error is JSON in a text, and what the plugin raised is once more JSON in a text of that."""
    match failure:
        case InvocationError():
            return _error("PluginInvokeError", marshalled(remarshalled(failure.said)))
        case RunTimeoutError():
            return _error("PluginDaemonInternalServerError", "killed by timeout")
        case _:
            return _error("PluginDaemonInternalServerError", str(failure))


def _error(error_type: str, message: str) -> JsonObject:
    said = {"message": message, "error_type": error_type, "args": None}
    return {"code": FAILED, "message": marshalled(said), "data": None}


# The messages of a strategy or a tool as the daemon decodes them on their way from the plugin.


def agent_message(said: Any) -> JsonObject:  # noqa: ANN401 - any value that the plugin streamed
    return _read(structs.agent_message, said)


def tool_message(said: Any) -> JsonObject:  # noqa: ANN401 - as above
    return _read(structs.tool_message, said)


def _read(decoded: Callable[[Any], JsonObject], said: Any) -> JsonObject:  # noqa: ANN401 - as above
    try:
        return decoded(said)
    except (structs.GoDecodeError, NumberRangeError) as error:
        raise InvocationError("unmarshal_error", f"unmarshal json failed: {error}") from error

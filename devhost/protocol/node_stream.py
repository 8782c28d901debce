"""What the Agent node reads of a run from the daemon: an envelope for each message, or for the failure that ends it."""

from devhost.errors import InvocationError, RunFailure, RunTimeoutError
from devhost.protocol.golang.values import marshalled, remarshalled
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

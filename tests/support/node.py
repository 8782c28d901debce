"""What Dify's Agent node shows for the error that ends a run.

In: what the strategy raises, through the SDK's own server. Out: the text that an app builder reads. The rule is that of
Dify's plugin client (API 1.17.0); devhost/tests/support/recordings.py reads it as recorded.
"""

import json
from collections.abc import Callable
from typing import Any

from dify_plugin.core.server.__base.response_writer import ResponseWriter
from dify_plugin.core.server.io_server import IOServer

from tests.support.host import Json

KNOWN_TO_DIFY = frozenset(
    {
        "InvokeRateLimitError",
        "InvokeAuthorizationError",
        "InvokeBadRequestError",
        "InvokeConnectionError",
        "InvokeServerUnavailableError",
    }
)


class SdkLines(ResponseWriter):
    """Keeps the lines that the SDK writes."""

    def __init__(self) -> None:
        self.lines: list[Json] = []

    def write(self, data: str) -> None:
        if data.strip():
            self.lines.append(json.loads(data))

    def done(self) -> None:
        """A writer of one session has nothing to end."""


class _Server(IOServer):
    """The SDK's server around one job; nothing of it is started."""

    def __init__(self, job: Callable[[], None]) -> None:
        self._job = job

    def _execute_request(self, *_: Any, **__: Any) -> None:  # noqa: ANN401 - the SDK's
        self._job()

    def error_body(self) -> Json:
        """What the SDK sends when the job raises."""
        writer = SdkLines()
        reader: Any = None
        self._execute_request_in_thread("session-1", {}, reader, writer)
        (body,) = [line["data"]["data"] for line in writer.lines if line["data"]["type"] == "error"]
        return dict(body)


def error_body(raised: Exception) -> Json:
    """The SDK's ``{error_type, message, args}`` for an exception, its traceback among ``args``."""

    def job() -> None:
        raise raised

    return _Server(job).error_body()


def node_shows(body: Json) -> str:
    """The text under the failed node."""
    if body["error_type"] in KNOWN_TO_DIFY:
        return str(body["message"])
    return (
        f"Failed to transform agent message: req_id: 0123456789 PluginInvokeError: {json.dumps(body, sort_keys=True)}"
    )

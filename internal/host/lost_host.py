"""Ends the process once it can serve Dify no longer.

The SDK alone would keep it: for remote debugging it calls a reader that has ended again and again, without a pause, and
a serverless process whose port is taken waits for requests that cannot come.
"""

import logging
import os
import threading
from collections.abc import Iterator

from dify_plugin.core.entities.plugin.io import PluginInStream
from dify_plugin.core.server.__base.request_reader import RequestReader

logger = logging.getLogger(__name__)


class HostLost(BaseException):
    """Dify's plugin daemon does not answer any more. An ``Exception`` would only be a line in the SDK's log."""


def end_with_any_thread() -> None:
    """Exit code 1 and one sentence when a thread fails: all are the SDK's, and it can do without none of them."""
    threading.excepthook = _end


def end_with_its_stream(reader: RequestReader) -> None:
    """The same when no more requests can come."""
    read = reader._read_stream  # noqa: SLF001 - the one place where its end can be seen

    def read_to_the_end() -> Iterator[PluginInStream]:
        try:
            yield from read()
        except OSError as error:
            raise HostLost(f"Dify's plugin daemon has gone, and cannot be reached again: {error}") from error

    vars(reader)["_read_stream"] = read_to_the_end


def _end(failed: threading.ExceptHookArgs, /) -> None:
    logger.critical("The plugin ends, because it can serve Dify no longer: %s", failed.exc_value)
    os._exit(1)

"""Starts the plugin: checks its settings, then lets the SDK serve Dify over stdio, TCP or HTTP.

The settings are in the environment or `.env`. The SDK validates them when it is imported, so an invalid setting would
prevent startup.
"""

import gc
import logging
import os
import sys
import threading
from collections.abc import Iterator, Mapping, MutableMapping
from functools import cache
from typing import Any, NamedTuple, TextIO

import yaml
from dotenv import dotenv_values


class Timeout(NamedTuple):
    """A time limit in seconds: the default for a missing or unusable value, and the bounds of a usable value."""

    default: int
    least: int
    most: int
    is_always_set: bool = False
    """Whether the default replaces the SDK's own default."""


TIMEOUTS = {
    # How long a serverless connection may stay silent. Dify treats a connection that ends early as a success
    # (docs/host-facts.md, "The three runtimes"), and a run with hidden thoughts may write nothing until its end.
    # Therefore this is the limit of a whole run: 600 s unless Dify is configured otherwise, and at most an hour. The
    # SDK's default of 300 s would be too short.
    "MAX_REQUEST_TIMEOUT": Timeout(default=3600, least=600, most=3600, is_always_set=True),
    # How long a model or tool call may stay silent. Dify ends such a call after 240 s with an error, and a run after
    # 600 s without notifying the plugin (docs/host-facts.md, "Time limits"). A larger value would only keep abandoned
    # runs alive.
    "MAX_INVOCATION_TIMEOUT": Timeout(default=250, least=10, most=600),
}


def settle_timeouts(environment: MutableMapping[str, str], dotenv: Mapping[str, str | None]) -> list[str]:
    """Put usable values into ``environment``. Return a line for the log for each value that was changed."""
    changes = []
    for name, timeout in TIMEOUTS.items():
        asked = environment.get(name, dotenv.get(name))
        if asked is None and not timeout.is_always_set:
            continue
        try:
            wanted = round(float(asked or ""))
            seconds = min(max(wanted, timeout.least), timeout.most)
            problem = ""
            if seconds != wanted:
                problem = f"{wanted} is outside {timeout.least} to {timeout.most}"
        except (ValueError, OverflowError):
            seconds = timeout.default
            problem = ""
            if asked and asked.strip():
                problem = "not a number of seconds"
        environment[name] = str(seconds)
        if problem:
            changes += [f"{name}: {problem}; {seconds} is used"]
    return changes


ON = {"", "on", "true", "yes", "1"}
OFF = {"off", "false", "no", "0"}


def settle_log_content(environment: MutableMapping[str, str], dotenv: Mapping[str, str | None]) -> list[str]:
    """Put ``on`` or ``off`` into ``environment`` if LOG_CONTENT is set. Return a line for the log for any other value.

    An unknown value counts as ``off``, because the variable is set to keep contents out of the logs.
    """
    asked = environment.get("LOG_CONTENT", dotenv.get("LOG_CONTENT"))
    if asked is None:
        return []
    word = asked.strip().lower()
    if word in ON:
        environment["LOG_CONTENT"] = "on"
    else:
        environment["LOG_CONTENT"] = "off"
    if word in ON | OFF:
        return []
    return ["LOG_CONTENT: neither on nor off; off is used"]


if __name__ == "__main__":
    gc.disable()  # imports leave almost no garbage, and searching for it takes a tenth of the startup time

given = dotenv_values(".env")
changes = [*settle_timeouts(os.environ, given), *settle_log_content(os.environ, given)]

from dify_plugin import DifyPluginEnv, Plugin  # noqa: E402 - reads the environment as settled above
from dify_plugin.config.logger_format import plugin_logger_handler  # noqa: E402 - belongs to the import above
from dify_plugin.core import runtime  # noqa: E402
from dify_plugin.core.entities.plugin.io import PluginInStream  # noqa: E402
from dify_plugin.core.server.__base import filter_reader  # noqa: E402
from dify_plugin.core.server.__base.request_reader import RequestReader  # noqa: E402
from dify_plugin.core.server.__base.response_writer import ResponseWriter  # noqa: E402
from dify_plugin.core.server.__base.writer_entities import Event  # noqa: E402
from dify_plugin.core.server.stdio import request_reader as stdio_reader  # noqa: E402
from dify_plugin.core.server.stdio.response_writer import StdioResponseWriter  # noqa: E402
from dify_plugin.core.server.tcp import request_reader as tcp_reader  # noqa: E402
from gevent import get_hub  # noqa: E402
from gevent.queue import Queue  # noqa: E402
from pydantic import BaseModel, TypeAdapter  # noqa: E402
from pydantic_core import to_json  # noqa: E402

logger = logging.getLogger(__name__)


class HostLost(BaseException):
    """Raised when Dify's plugin daemon no longer answers. The SDK would only log an ``Exception``.

    The SDK itself would not end the process. With remote debugging it calls a finished reader again and again without a
    pause, and a serverless process whose port is taken waits for requests that cannot arrive.
    """


def end_the_process(failed: threading.ExceptHookArgs, /) -> None:
    """End the process with one sentence and exit code 1 when a thread fails, because the SDK needs all its threads."""
    logger.critical("The plugin ends, because it can serve Dify no longer: %s", failed.exc_value)
    os._exit(1)


def end_with_its_stream(reader: RequestReader) -> None:
    """End the process when no more requests can arrive."""
    read = reader._read_stream  # noqa: SLF001 - the only place where the end of the stream is visible

    def read_to_the_end() -> Iterator[PluginInStream]:
        try:
            yield from read()
        except OSError as error:
            raise HostLost(f"Dify's plugin daemon has gone, and cannot be reached again: {error}") from error

    vars(reader)["_read_stream"] = read_to_the_end


def put_in_one_step() -> None:
    """Serialize a message to a line in one step.

    The SDK would first copy a message's content up to three times, which takes longer than serializing it.
    """

    def stream_object(_writer: ResponseWriter, data: Mapping[str, Any] | BaseModel) -> dict[str, Any]:
        return {"type": "stream", "data": data}

    def stream_invoke_object(_writer: ResponseWriter, data: Mapping[str, Any] | BaseModel) -> dict[str, Any]:
        return {"type": "invoke", "data": data}

    def put(
        writer: ResponseWriter,
        event: Event,
        session_id: str | None = None,
        data: Mapping[str, Any] | BaseModel | None = None,
    ) -> None:
        line = {"event": event.value, "session_id": session_id, "data": data}
        writer.write(f"{to_json(line, inf_nan_mode='null').decode()}\n\n")

    for method in (stream_object, stream_invoke_object, put):
        type.__setattr__(ResponseWriter, method.__name__, method)


def write_together(stdout: TextIO) -> None:
    """Send lines for Dify together if they are written without a wait between them.

    The SDK makes two system calls for each line. A short run writes 20 lines, and spent a quarter of its time on these
    system calls.
    """
    held = list[str]()

    def flush() -> None:
        lines = "".join(held)
        held.clear()
        stdout.write(lines)
        stdout.flush()

    def write(_writer: StdioResponseWriter, data: str) -> None:
        if not held:
            get_hub().loop.run_callback(flush)  # as soon as this greenlet waits for something
        held.append(data)

    type.__setattr__(StdioResponseWriter, "write", write)


if __name__ == "__main__":
    # The SDK parses the plugin's declarations with PyYAML's Python loader. The C loader takes an eighth of the time.
    vars(yaml)["SafeLoader"] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    # For each line, the SDK creates a new TypeAdapter of the same type, which takes longer than parsing the line.
    for reader in (tcp_reader, stdio_reader, runtime):
        vars(reader)["TypeAdapter"] = cache(TypeAdapter)
    # All threads of the SDK are greenlets of one thread. A queue for threads costs a lock and a timer for each item.
    vars(filter_reader)["Queue"] = Queue
    put_in_one_step()
    threading.excepthook = end_the_process
    plugin = Plugin(DifyPluginEnv())
    end_with_its_stream(plugin.request_reader)
    write_together(sys.stdout)
    for name in (__name__, "internal"):
        logging.getLogger(name).addHandler(plugin_logger_handler)
    for change in changes:  # comes after Plugin(), because the manifest that it writes must be Dify's first line
        logger.warning(change)
    # Imported objects live until the end. Without this call, each full garbage collection would visit all of them and
    # pause every run. About 2,000 garbage objects stay, too, because finding them would take a tenth of the
    # startup time.
    gc.freeze()
    gc.enable()
    plugin.run()

"""Starts the plugin: its settings are settled first, then the SDK serves Dify over stdio, TCP or HTTP.

In: MAX_REQUEST_TIMEOUT and MAX_INVOCATION_TIMEOUT (seconds) and LOG_CONTENT (on or off) from the environment or `.env`.
Out: a running plugin.
The SDK validates the environment while it is imported, so that one bad value would keep the plugin from starting.
"""

import gc
import logging
import os
from collections.abc import Mapping, MutableMapping
from typing import NamedTuple

from dotenv import dotenv_values


class Timeout(NamedTuple):
    """Seconds: what holds when nothing usable is asked for, and the bounds of what may be."""

    default: int
    least: int
    most: int
    is_always_set: bool = False
    """Whether the default is ours, rather than the SDK's own."""


TIMEOUTS = {
    # How long a serverless connection may stay silent. Dify reads a connection that ends early as a success, so it has
    # to outlast the longest silence of a run: a whole run, since hidden thoughts write nothing. A run has 600 s unless
    # the host is configured otherwise, and an hour at most. The SDK's own 300 s would be too short.
    "MAX_REQUEST_TIMEOUT": Timeout(default=3600, least=600, most=3600, is_always_set=True),
    # How long a model or tool call may stay silent. Dify cuts such a call after 240 s with a message that says so,
    # and a run after 600 s without telling the plugin: a larger value only keeps abandoned runs alive.
    "MAX_INVOCATION_TIMEOUT": Timeout(default=250, least=10, most=600),
}


def settle_timeouts(environment: MutableMapping[str, str], dotenv: Mapping[str, str | None]) -> list[str]:
    """Put usable values into ``environment``; return a line for the log for each one that had to be changed."""
    changes = []
    for name, timeout in TIMEOUTS.items():
        asked = environment.get(name, dotenv.get(name))
        if asked is None and not timeout.is_always_set:
            continue
        seconds, change = settle(timeout, asked or "")
        environment[name] = str(seconds)
        if change:
            changes.append(f"{name}: {change}")
    return changes


def settle(timeout: Timeout, asked: str) -> tuple[int, str]:
    """The seconds to use, and what had to be changed in what was asked for; blank means that nothing was asked for."""
    try:
        wanted = round(float(asked))
    except (ValueError, OverflowError):
        return timeout.default, asked.strip() and f"not a number of seconds; {timeout.default} is used"
    seconds = min(max(wanted, timeout.least), timeout.most)
    if seconds == wanted:
        return seconds, ""
    return seconds, f"{wanted} is outside {timeout.least} to {timeout.most}; {seconds} is used"


SWITCH = {
    "": "on",
    "on": "on",
    "true": "on",
    "yes": "on",
    "1": "on",
    "off": "off",
    "false": "off",
    "no": "off",
    "0": "off",
}


def settle_log_content(environment: MutableMapping[str, str], dotenv: Mapping[str, str | None]) -> list[str]:
    """Put ``on`` or ``off`` into ``environment`` if LOG_CONTENT is set; a line for the log where neither was meant.

    Whoever sets it wants contents kept out of the logs, so what cannot be understood is ``off``.
    """
    asked = environment.get("LOG_CONTENT", dotenv.get("LOG_CONTENT"))
    if asked is None:
        return []
    understood = SWITCH.get(asked.strip().lower())
    environment["LOG_CONTENT"] = understood or "off"
    return [] if understood else ["LOG_CONTENT: neither on nor off; off is used"]


given = dotenv_values(".env")
changes = [*settle_timeouts(os.environ, given), *settle_log_content(os.environ, given)]

from dify_plugin import DifyPluginEnv, Plugin  # noqa: E402 - reads the environment as settled above
from dify_plugin.config.logger_format import plugin_logger_handler  # noqa: E402 - belongs to the import above

if __name__ == "__main__":
    plugin = Plugin(DifyPluginEnv())
    logger = logging.getLogger(__name__)
    for name in (__name__, "internal"):
        logging.getLogger(name).addHandler(plugin_logger_handler)
    for change in changes:  # only now: the manifest, written by Plugin(), has to be the first line that Dify reads
        logger.warning(change)
    # What was imported stays. Otherwise every full collection would look at all of it again, and no session runs then.
    gc.collect()
    gc.freeze()
    plugin.run()

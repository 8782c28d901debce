"""The metadata of a finished log row: what it has cost, and where Dify finds its icon.

Dify reads tokens, price and currency there. For every finished row that names a provider its API looks the icon up
while the stream waits; a row that brings its icon costs no look-up (docs/host-facts.md, "Icons and log look-ups").
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dify_plugin.entities.invoke_message import InvokeMessage
from dify_plugin.entities.provider_config import LogMetadata

from internal.report.usage import Usage
from internal.tools.toolbox import Tool

MAX_PROVIDERS = 20
"""Rows of a run that name a provider: each holds the stream up by about half a second on a busy machine."""
_ICON = "icon"
_MAX_ICON_LENGTH = 1_000
_ADDRESS = re.compile(r"https?://\S+", re.IGNORECASE)
_ASSET = re.compile(r"[\w-][\w.-]*\.(?:svg|png|jpe?g|gif|webp|ico)", re.IGNORECASE)


class LogRow(InvokeMessage.LogMessage):
    """A log message whose metadata may hold ``icon``, which Dify's log view reads and the SDK's enum of keys lacks."""

    metadata: Mapping[str, Any] | None = None  # type: ignore[assignment] # the reason for this class


@dataclass
class Icons:
    """Chooses the source of each tool row's icon.

    Rows of models name no provider: they end while the answer streams, which would wait for the look-up.
    """

    _looked_up: set[str] = field(default_factory=set)

    def of_tool(self, tool: Tool) -> dict[str, str]:
        """The icon that the tool brings, else its provider in the first row of the tool."""
        if is_shown(tool.icon, tool.provider):
            return {_ICON: tool.icon}
        if not tool.provider or tool.name in self._looked_up or len(self._looked_up) == MAX_PROVIDERS:
            return {}
        self._looked_up.add(tool.name)
        return {LogMetadata.PROVIDER.value: tool.provider}


def is_shown(icon: str, provider: str) -> bool:
    """Whether the log view can show it: an address, or a file among the assets of the plugin that has the provider.

    The provider of a plugin is ``author/plugin/provider``; a file name of any other leads nowhere.
    """
    is_asset = "/" in provider and _ASSET.fullmatch(icon) is not None
    return len(icon) <= _MAX_ICON_LENGTH and (is_asset or _ADDRESS.fullmatch(icon) is not None)


def cost(usage: Usage) -> dict[str, Any]:
    """Tokens and price as Dify's panel reads them."""
    return {
        LogMetadata.TOTAL_TOKENS.value: usage.total_tokens,
        LogMetadata.TOTAL_PRICE.value: float(usage.total_price),
        LogMetadata.CURRENCY.value: usage.currency or "USD",
    }


def cost_in_words(usage: Usage) -> str:
    tokens = f"{usage.total_tokens:,} tokens"
    return f"{tokens}, {usage.total_price:f} {usage.currency or 'USD'}" if usage.total_price else tokens


def elapsed(seconds: float | None) -> dict[str, float]:
    return {} if seconds is None else {LogMetadata.ELAPSED_TIME.value: round(seconds, 3)}


@dataclass
class Totals:
    """What the rows below each row of a run have cost, and how many calls among them failed.

    A row's key says what stands above it.
    """

    _usage: dict[str, Usage] = field(default_factory=dict)
    _failed: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def add_turn(self, key: str, usage: Usage) -> None:
        for above in _keys_above(key):
            self._usage[above] = self._usage.get(above, Usage()) + usage

    def add_call(self, key: str, *, failed: bool) -> None:
        for above in _keys_above(key):
            self._failed[above] += failed

    def usage_below(self, key: str) -> Usage | None:
        """None if no model was called."""
        return self._usage.get(key)

    def failed_below(self, key: str) -> dict[str, int]:
        """Empty if none failed."""
        return {"failed_calls": self._failed[key]} if self._failed.get(key) else {}


def key_above(key: str) -> str | None:
    """The key of the row that a row hangs from; None for one at the top."""
    return key.rpartition(".")[0] or None


def _keys_above(key: str) -> Iterator[str]:
    parts = key.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts)))

"""How much of a run's contents its log shows: all of it, or names, sizes and kinds alone.

In: what a row would say. Out: the same, or, with ``LOG_CONTENT=off`` in the plugin's environment, nothing that a user,
a model, a tool or a host has said. Numbers, switches and names stay, so that a person still sees what happened.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from internal.host.failures import FailureKind, classify
from internal.report.events import OurWords

VARIABLE = "LOG_CONTENT"
_NAMES = frozenset({"status", "stop_reason", "finish_reason", "tool", "tool_calls"})
"""Fields of a row's data whose texts are names."""
_KINDS = frozenset(FailureKind)


@dataclass(frozen=True)
class LogContent:
    """What a log may show."""

    is_shown: bool = True

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> "LogContent":
        """From the environment, as main.py has settled it: whatever is set and is not ``on`` keeps contents out."""
        return cls(environment.get(VARIABLE, "on") == "on")

    def data(self, data: Mapping[str, Any]) -> Mapping[str, Any]:
        return data if self.is_shown else {name: _sized(name, value) for name, value in data.items()}

    def arguments(self, arguments: Mapping[str, Any] | str) -> Mapping[str, Any] | str:
        """A number may be an account's: of every argument, whatever its type, only the size is told."""
        if self.is_shown:
            return arguments
        if isinstance(arguments, str):
            return size_of(arguments)
        return {name: size_of(value) for name, value in arguments.items()}

    def label(self, label: str, about: str) -> str:
        return f"{label}: {about}" if about and self.is_shown else label

    def words(self, text: str) -> str:
        return text if self.is_shown or isinstance(text, OurWords) else size_of(text)

    def error(self, error: str) -> str:
        """The error, or what kind of failure it is."""
        if self.is_shown or isinstance(error, OurWords):
            return error
        named = error.partition(":")[0]
        return named if named in _KINDS else classify(error).value


def size_of(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return f"{len(text):,} character{'' if len(text) == 1 else 's'}"


def _sized(name: str, value: object) -> object:
    """A value whose texts are replaced by their sizes."""
    if isinstance(value, str):
        return value if name in _NAMES or not value else size_of(value)
    if isinstance(value, Mapping):
        return {str(key): _sized(str(key), item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_sized(name, item) for item in value]
    return value

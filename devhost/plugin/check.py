"""All declarations of a plugin's directory by the daemon's rules, without starting it.

In: a directory. Out: a `Refusal` for each fault, with its file, its key and the daemon's words. The daemon looks this
closely only when a plugin registers for remote debugging: a package with such a fault is installed, and breaks in use.
"""

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devhost.errors import DeclarationError
from devhost.plugin.rules.fields import Fault
from devhost.plugin.rules.manifest import manifest_faults
from devhost.plugin.rules.strategy import strategy_provider_faults
from devhost.plugin.rules.tool import tool_provider_faults
from devhost.plugin.rules.words import MANIFEST, STRATEGY_PROVIDER, TOOL_PROVIDER, in_the_daemons_words
from devhost.text.yaml_file import load_yaml

MANIFEST_FILE = "manifest.yaml"
ASSETS = "_assets"
CHILDREN: Mapping[str, str] = {"tools": "tools", "agent_strategies": "strategies"}
"""By kind of provider, the key of a provider's YAML whose paths lead to the YAML of its parts."""
ELSEWHERE = ("models", "endpoints", "datasources", "triggers")
"""Kinds of providers whose rules are not here."""


@dataclass(frozen=True)
class Refusal:
    file: str
    """Relative to the plugin."""
    key: str
    sentence: str
    words: str
    """The daemon's; empty for what only the SDK refuses."""


@dataclass(frozen=True)
class Checked:
    files: int
    refusals: tuple[Refusal, ...]
    unchecked: tuple[str, ...]
    """Kinds of providers that the plugin has and that were not looked at."""


def check_plugin(directory: Path) -> Checked:
    """DeclarationError without a manifest, or if it cannot be read."""
    if not (directory / MANIFEST_FILE).is_file():
        raise DeclarationError(f"{directory} is not a plugin: {MANIFEST_FILE} is missing")
    check = _Check(directory)
    manifest = check.read(MANIFEST_FILE)
    plugins = manifest.get("plugins")
    kinds = plugins if isinstance(plugins, dict) else {}
    refusals = [*check.manifest(manifest, kinds)]
    for kind in CHILDREN:
        for path in _paths(kinds.get(kind)):
            refusals += check.provider(kind, path)
    unchecked = tuple(kind for kind in ELSEWHERE if kinds.get(kind))
    return Checked(check.files, tuple(refusals), unchecked)


class _Check:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.files = 0

    def read(self, path: str) -> dict[str, Any]:
        self.files += 1
        read: dict[str, Any] = _as_sent(load_yaml(self._directory / path))
        return read

    def manifest(self, manifest: dict[str, Any], kinds: dict[str, Any]) -> Iterator[Refusal]:
        for fault in manifest_faults(manifest):
            yield _refusal(MANIFEST_FILE, MANIFEST, fault, fault.path)
        yield from self._icons(MANIFEST_FILE, manifest)
        others = [kind for kind in ("tools", *ELSEWHERE) if kinds.get(kind)]
        if kinds.get("agent_strategies") and others:
            words = "agent_strategy and tool, model, or endpoint cannot be provided at the same time"
            yield Refusal(MANIFEST_FILE, "plugins", f"agent_strategies share a plugin with {', '.join(others)}", words)
        if not any(kinds.get(kind) for kind in (*CHILDREN, *ELSEWHERE)):
            words = "at least one of endpoint, model, tool, or agent_strategy must be provided"
            yield Refusal(MANIFEST_FILE, "plugins", "the plugin declares nothing", words)

    def provider(self, kind: str, path: str) -> Iterator[Refusal]:
        """The provider and its parts are one declaration; a fault is told of the file that has it."""
        children = CHILDREN[kind]
        try:
            provider = self.read(path)
        except DeclarationError as error:
            yield self._unread(path, error)
            return
        paths, parts = _paths(provider.get(children)), []
        for child in paths:
            try:
                parts.append(self.read(child))
            except DeclarationError as error:
                yield self._unread(child, error)
        is_tool = kind == "tools"
        struct, faults_of = (
            (TOOL_PROVIDER, tool_provider_faults) if is_tool else (STRATEGY_PROVIDER, strategy_provider_faults)
        )
        whole = {**provider, children: parts}
        for fault in faults_of(whole):
            match fault.path:
                case (first, int(number), *inner) if first == children:
                    yield _refusal(paths[number], struct, fault, tuple(inner))
                case _:
                    yield _refusal(path, struct, fault, fault.path)
        identity = provider.get("identity")
        yield from self._icons(path, identity if isinstance(identity, dict) else {})
        for file, data in zip([path, *paths], [provider, *parts], strict=False):
            yield from self._source(file, data)

    def _unread(self, path: str, error: DeclarationError) -> Refusal:
        words = "" if (self._directory / path).is_file() else f"open {path}: no such file or directory"
        return Refusal(path, "", str(error), words)

    def _icons(self, file: str, holder: dict[str, Any]) -> Iterator[Refusal]:
        for key in ("icon", "icon_dark"):
            icon = holder.get(key)
            if isinstance(icon, str) and icon and not (self._directory / ASSETS / icon).is_file():
                yield Refusal(file, key, f"{icon!r} is not in {ASSETS}/", f"plugin icon not found: {icon}")

    def _source(self, file: str, data: dict[str, Any]) -> Iterator[Refusal]:
        match data:
            case {"extra": {"python": {"source": str(source)}}}:
                if not (self._directory / source).is_file():
                    yield Refusal(file, "extra.python.source", f"{source} does not exist: the SDK cannot load it", "")
            case _:
                yield Refusal(file, "extra.python.source", "it is missing: the SDK does not know what to load", "")


def _refusal(file: str, struct: str, fault: Fault, path: tuple[str | int, ...]) -> Refusal:
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
    return Refusal(file, key, fault.sentence, in_the_daemons_words(struct, fault))


def _paths(value: object) -> list[str]:
    return [path for path in value if isinstance(path, str)] if isinstance(value, list) else []


def _as_sent(value: Any) -> Any:  # noqa: ANN401 - YAML of any shape
    """As the SDK writes it as JSON: without nulls, a time as a text, an option's value as a text."""
    match value:
        case dict():
            sent = {str(key): _as_sent(item) for key, item in value.items() if item is not None}
            if set(sent) <= {"value", "label", "icon", "show_on"} and isinstance(sent.get("value"), bool | int | float):
                sent["value"] = str(sent["value"])
            return sent
        case list():
            return [_as_sent(item) for item in value]
        case dt.date():  # also one with a time
            return value.isoformat()
        case _:
            return value

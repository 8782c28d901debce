"""A plugin directory as data: manifest.yaml → provider YAML → strategy and tool YAMLs.

Reads YAML only, never the plugin's code. Errors name the file and the key. Keys that devhost does not need are
ignored, as Dify ignores keys that it does not know.
"""

import datetime as dt
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, Field, ValidationError, field_validator

from devhost.errors import DeclarationError
from devhost.plugin.contents import Contents
from devhost.plugin.credentials import CredentialField
from devhost.plugin.keys import Declared, I18n, Manifest, Parameter, ToolParameter
from devhost.plugin.nearest import plugin_in
from devhost.plugin.rules.declarations import manifest_faults, strategy_provider_faults, tool_provider_faults
from devhost.plugin.rules.fields import LOST, MANIFEST, STRATEGY_PROVIDER, TOOL_PROVIDER, Fault, in_the_daemons_words
from devhost.plugin.rules.listed import Level, Problem, rule_of
from devhost.text import describe, load_yaml, real_path


class Identity(Declared):
    author: str
    name: str
    label: I18n
    icon: str = ""


class ToolDescription(Declared):
    human: I18n
    llm: str


class Strategy(Declared):
    identity: Identity
    description: I18n
    parameters: tuple[Parameter, ...] = ()
    output_schema: dict[str, Any] | None = None


class Tool(Declared):
    identity: Identity
    description: ToolDescription
    parameters: tuple[ToolParameter, ...] = ()
    output_schema: dict[str, Any] | None = None
    has_runtime_parameters: bool = False

    @field_validator("parameters", mode="before")
    @classmethod
    def _no_parameters(cls, value: object) -> object:
        return () if value is None else value


class StrategyProvider(Declared):
    identity: Identity
    strategies: tuple[Strategy, ...]


class ToolProvider(Declared):
    identity: Identity
    tools: tuple[Tool, ...]
    credentials_for_provider: dict[str, CredentialField] = Field(default_factory=dict)

    @field_validator("credentials_for_provider", mode="before")
    @classmethod
    def _no_credentials(cls, value: object) -> object:
        return {} if value is None else value


class PluginDeclaration(Declared):
    directory: Path
    manifest: Manifest
    strategy_providers: tuple[StrategyProvider, ...]
    tool_providers: tuple[ToolProvider, ...]

    @classmethod
    def read(cls, directory: Path) -> Self:
        directory = plugin_in(real_path(directory))
        manifest = _read(directory, "manifest.yaml", Manifest)
        return cls(
            directory=directory,
            manifest=manifest,
            strategy_providers=tuple(
                _read(directory, path, StrategyProvider, ("strategies", Strategy))
                for path in manifest.plugins.agent_strategies
            ),
            tool_providers=tuple(
                _read(directory, path, ToolProvider, ("tools", Tool)) for path in manifest.plugins.tools
            ),
        )

    @cached_property
    def strategies(self) -> Mapping[str, tuple[StrategyProvider, Strategy]]:
        return {
            strategy.identity.name: (provider, strategy)
            for provider in self.strategy_providers
            for strategy in provider.strategies
        }

    def provider_id(self, provider: ToolProvider) -> str:
        """How Dify names a plugin's tool provider: author/plugin/provider."""
        return f"{self.manifest.author}/{self.manifest.name}/{provider.identity.name}"


def _read[T: BaseModel](
    directory: Path, path: str, kind: type[T], children: tuple[str, type[BaseModel]] | None = None
) -> T:
    """One YAML file as a `kind`; `children` names the key whose paths are replaced by the files they lead to."""
    file = directory / path
    data = load_yaml(file)
    if children is not None:
        key, child = children
        paths = data.get(key)
        if not isinstance(paths, list) or not all(isinstance(item, str) for item in paths):
            raise DeclarationError(f"{file}: {key} must be a list of paths to YAML files")
        data = {**data, key: [_read(directory, item, child) for item in paths]}
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        raise DeclarationError(f"{file}: {describe(error)}") from error


# The declarations of a plugin: its manifest, its providers and their parts.
#
# The daemon looks this closely only when a plugin registers for remote debugging: a package with such a fault is
# installed, and breaks in use.

MANIFEST_FILE = "manifest.yaml"
ASSETS = "_assets"
TEMPLATE_ICON = b"DIFY_MARKETPLACE_TEMPLATE_ICON"
"""Begins the mark in the icon of Dify's template for new plugins."""
CHILDREN: Mapping[str, str] = {"tools": "tools", "agent_strategies": "strategies"}
"""By kind of provider, the key of a provider's YAML whose paths lead to the YAML of its parts."""
ELSEWHERE = ("models", "endpoints", "datasources", "triggers")
"""Kinds of providers whose rules are not here."""


class Declarations:
    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self.files = 0
        """How many were read."""

    def read(self, path: str) -> dict[str, Any]:
        self.files += 1
        read: dict[str, Any] = _as_sent(load_yaml(self._contents.directory / path))
        return read

    def problems(self, manifest: dict[str, Any]) -> Iterator[Problem]:
        kinds = kinds_of(manifest)
        yield from self._manifest(manifest, kinds)
        for kind in CHILDREN:
            for path in _paths(kinds.get(kind)):
                yield from self._provider(kind, path)

    def _manifest(self, manifest: dict[str, Any], kinds: dict[str, Any]) -> Iterator[Problem]:
        for fault in manifest_faults(manifest):
            yield _problem(MANIFEST_FILE, MANIFEST, fault, fault.path, manifest)
        yield from self._icons(MANIFEST_FILE, manifest)
        others = [kind for kind in ("tools", *ELSEWHERE) if kinds.get(kind)]
        if kinds.get("agent_strategies") and others:
            words = "agent_strategy and tool, model, or endpoint cannot be provided at the same time"
            sentence = f"agent_strategies share a plugin with {', '.join(others)}"
            yield Problem("kinds", MANIFEST_FILE, "plugins", sentence, words)
        if not any(kinds.get(kind) for kind in (*CHILDREN, *ELSEWHERE)):
            words = "at least one of endpoint, model, tool, or agent_strategy must be provided"
            yield Problem("kinds", MANIFEST_FILE, "plugins", "the plugin declares nothing", words)

    def _provider(self, kind: str, path: str) -> Iterator[Problem]:
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
                    yield _problem(paths[number], struct, fault, tuple(inner), parts[number])
                case _:
                    yield _problem(path, struct, fault, fault.path, provider)
        identity = provider.get("identity")
        yield from self._icons(path, identity if isinstance(identity, dict) else {})
        for file, data in zip([path, *paths], [provider, *parts], strict=False):
            yield from self._unpacked(file)
            yield from self._source(file, data)

    def _unread(self, path: str, error: DeclarationError) -> Problem:
        exists = (self._contents.directory / path).is_file()
        return Problem("yaml", path, "", str(error), "" if exists else f"open {path}: no such file or directory")

    def _unpacked(self, path: str) -> Iterator[Problem]:
        if reason := self._contents.absent(path):
            yield Problem("yaml", path, "", f"it {reason}", f"open {path}: no such file or directory")

    def _icons(self, file: str, holder: dict[str, Any]) -> Iterator[Problem]:
        for key in ("icon", "icon_dark"):
            icon = holder.get(key)
            if not isinstance(icon, str) or not icon:
                continue
            path = f"{ASSETS}/{icon}"
            if reason := self._contents.absent(path):
                yield Problem("icon", file, key, f"{path} {reason}", f"plugin icon not found: {icon}")
            elif TEMPLATE_ICON in self._contents.read(path):
                sentence = f"{path} is the template's icon: draw one of your own"
                yield Problem("icon", file, key, sentence, level="marketplace")

    def _source(self, file: str, data: dict[str, Any]) -> Iterator[Problem]:
        match data:
            case {"extra": {"python": {"source": str(source)}}}:
                if reason := self._contents.absent(source):
                    sentence = f"{source} {reason}: the SDK cannot load it"
                    yield Problem("source", file, "extra.python.source", sentence)
            case _:
                sentence = "it is missing: the SDK does not know what to load"
                yield Problem("source", file, "extra.python.source", sentence)


def kinds_of(manifest: dict[str, Any]) -> dict[str, Any]:
    plugins = manifest.get("plugins")
    return plugins if isinstance(plugins, dict) else {}


def _problem(file: str, struct: str, fault: Fault, path: tuple[str | int, ...], declared: dict[str, Any]) -> Problem:
    name = _name_at(path, declared)
    sentence = f"{fault.sentence}, in {name}" if name else fault.sentence
    level: Level = "notice" if fault.rule in LOST else "refused"
    return Problem(rule_of(fault), file, _key(path), sentence, in_the_daemons_words(struct, fault), level)


def _name_at(path: tuple[str | int, ...], declared: object) -> str:
    """The name of the parameter that the path leads into; empty outside of parameters."""
    match path, declared:
        case ("parameters", int(number), *_), {"parameters": list(parameters)}:
            parameter = parameters[number]
            return str(parameter.get("name", "")) if isinstance(parameter, dict) else ""
    return ""


def _key(path: tuple[str | int, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


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

"""A plugin's folder by all rules of `rules/listed.py`, without starting it.

A `Problem` is what the daemon would refuse, now or when the plugin is in use, or what only the marketplace refuses.
`devhost check` shows them, and `devhost package` packs nothing with one.
"""

import datetime as dt
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from devhost.errors import DeclarationError, ParameterError
from devhost.plugin.contents import (
    Contents,
    compile_problems,
    dependency_problems,
    entrypoint_problems,
    forbidden_problems,
    ignore_problems,
    privacy_problems,
    readme_language_problems,
    readme_problems,
    secret_problems,
    size_problems,
)
from devhost.plugin.nearest import plugin_in
from devhost.plugin.rules.declarations import (
    manifest_faults,
    marketplace_problems,
    strategy_provider_faults,
    tool_provider_faults,
)
from devhost.plugin.rules.fields import LOST, MANIFEST, STRATEGY_PROVIDER, TOOL_PROVIDER, Fault, in_the_daemons_words
from devhost.plugin.rules.listed import Level, Problem, rule_of
from devhost.text import load_yaml

ACCEPTABLE = ("secret", "forbidden-file")
"""Rules that Dify does not have, and whose findings may be meant."""


@dataclass(frozen=True)
class Checked:
    declarations: int
    contents: Contents
    problems: tuple[Problem, ...]
    unchecked: tuple[str, ...]
    """Kinds of providers that the plugin has and that were not looked at."""

    def of(self, *levels: Level) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.level in levels)

    @property
    def refusals(self) -> tuple[Problem, ...]:
        return self.of("refused")


def check_plugin(directory: Path, accepted: Collection[str] = ()) -> Checked:
    """DeclarationError without a manifest, or if it cannot be read.

    Findings that `accepted` names as `RULE:FILE` are notices; ParameterError for one that is not found.
    """
    contents = Contents.of(plugin_in(directory))
    declarations = Declarations(contents)
    manifest = declarations.read(MANIFEST_FILE)
    problems = (
        *declarations.problems(manifest),
        *entrypoint_problems(contents, manifest),
        *dependency_problems(contents),
        *ignore_problems(contents),
        *forbidden_problems(contents),
        *size_problems(contents),
        *secret_problems(contents),
        *compile_problems(contents),
        *readme_problems(contents, manifest),
        *readme_language_problems(contents),
        *privacy_problems(contents, manifest),
        *marketplace_problems(manifest),
    )
    unchecked = tuple(kind for kind in ELSEWHERE if kinds_of(manifest).get(kind))
    return Checked(declarations.files, contents, _with_accepted(problems, contents, accepted), unchecked)


def _with_accepted(problems: tuple[Problem, ...], contents: Contents, accepted: Collection[str]) -> tuple[Problem, ...]:
    found = {
        f"{problem.rule}:{problem.file}"
        for problem in problems
        if problem.rule in ACCEPTABLE and problem.file in contents and contents.is_regular(problem.file)
    }
    for name in accepted:
        if name not in found:
            rules = " or ".join(f"{rule}:FILE" for rule in ACCEPTABLE)
            raise ParameterError(f"--accept {name}: there is no such finding; name one as {rules}")
    return tuple(
        replace(problem, level="notice", sentence=f"accepted: {problem.sentence}")
        if f"{problem.rule}:{problem.file}" in accepted
        else problem
        for problem in problems
    )


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

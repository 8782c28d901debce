"""A plugin's folder by all rules of `devhost.plugin.problems`, without starting it.

A `Problem` is what the daemon would refuse, now or when the plugin is in use, or what only the marketplace refuses.
`devhost check` shows them, and `devhost package` packs nothing with one.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from devhost.errors import DeclarationError, ParameterError, naming
from devhost.plugin.contents import (
    Contents,
    class_problems,
    compile_problems,
    dependency_problems,
    entrypoint_problems,
    forbidden_problems,
    ignore_problems,
    privacy_problems,
    readme_problems,
    secret_problems,
    size_problems,
)
from devhost.plugin.declaration import MANIFEST, as_sent, plugin_in
from devhost.plugin.problems import Level, Problem
from devhost.plugin.rules import faults, marketplace_problems
from devhost.text import load_yaml, place_of

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
    manifest = declarations.read(MANIFEST)
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
        *privacy_problems(contents, manifest),
        *marketplace_problems(manifest),
    )
    unchecked = tuple(kind for kind in ELSEWHERE if kinds_of(manifest).get(kind))
    return Checked(declarations.files, contents, _with_accepted(problems, accepted), unchecked)


def _with_accepted(problems: tuple[Problem, ...], accepted: Collection[str]) -> tuple[Problem, ...]:
    names = {f"{problem.rule}:{problem.file}" for problem in problems if problem.rule in ACCEPTABLE}
    if unknown := sorted(set(accepted) - names):
        raise ParameterError(f"--accept {unknown[0]}: there is no such finding; {naming(sorted(names))}")
    return tuple(
        replace(problem, level="notice", sentence=f"accepted: {problem.sentence}")
        if f"{problem.rule}:{problem.file}" in accepted
        else problem
        for problem in problems
    )


# The declarations of a plugin: its manifest, its providers and their parts.

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
        self._switches: list[tuple[str, str]] = []

    def read(self, path: str) -> dict[str, Any]:
        self.files += 1
        written = load_yaml(self._contents.directory / path)
        self._switches += [(path, place_of(way)) for way in _switches(written)]
        read: dict[str, Any] = as_sent(written)
        return read

    def problems(self, manifest: dict[str, Any]) -> Iterator[Problem]:
        kinds = kinds_of(manifest)
        yield from self._faults("manifest", manifest, "", [(MANIFEST, manifest)])
        yield from self._icons(MANIFEST, manifest)
        others = [kind for kind in ("tools", *ELSEWHERE) if kinds.get(kind)]
        if kinds.get("agent_strategies") and others:
            yield Problem("kinds", MANIFEST, "plugins", f"agent_strategies share a plugin with {', '.join(others)}")
        if not any(kinds.get(kind) for kind in (*CHILDREN, *ELSEWHERE)):
            yield Problem("kinds", MANIFEST, "plugins", "the plugin declares nothing")
        for kind in CHILDREN:
            for path in _paths(kinds.get(kind)):
                yield from self._provider(kind, path)
        for file, place in self._switches:
            sentence = "YAML reads it as true or false, and Dify as the text True or False: write it in quotes"
            yield Problem("declaration", file, place, sentence, "notice")

    def _provider(self, kind: str, path: str) -> Iterator[Problem]:
        """The provider and its parts are one declaration; a fault is told of the file that has it."""
        read, problems = self._readable([path])
        yield from problems
        for _, provider in read:
            children = CHILDREN[kind]
            parts, problems = self._readable(_paths(provider.get(children)))
            yield from problems
            whole = {**provider, children: [part for _, part in parts]}
            yield from self._faults(kind, whole, children, [*read, *parts])
            identity = provider.get("identity")
            yield from self._icons(path, identity if isinstance(identity, dict) else {})
            for file, data in [*read, *parts]:
                if reason := self._contents.absent(file):
                    yield Problem("declaration", file, "", f"it {reason}")
                yield from self._source(file, data)

    def _readable(self, paths: list[str]) -> tuple[list[tuple[str, dict[str, Any]]], list[Problem]]:
        read, problems = [], []
        for path in paths:
            try:
                read.append((path, self.read(path)))
            except DeclarationError as error:
                problems.append(Problem("declaration", path, "", str(error)))
        return read, problems

    def _faults(
        self, kind: str, whole: dict[str, Any], children: str, files: list[tuple[str, dict[str, Any]]]
    ) -> Iterator[Problem]:
        """`files`: the one of the declaration, then those of its parts."""
        for fault in faults(kind, whole):
            number, path = 0, fault.path
            match path:
                case (first, int(part), *inner) if first == children:
                    number, path = part + 1, tuple(inner)
            file, declared = files[number]
            name = _name_at(path, declared)
            sentence = f"{fault.sentence}, in {name}" if name else fault.sentence
            yield Problem("declaration", file, place_of(path), sentence, fault.level)

    def _icons(self, file: str, holder: dict[str, Any]) -> Iterator[Problem]:
        for key in ("icon", "icon_dark"):
            icon = holder.get(key)
            if not isinstance(icon, str) or not icon:
                continue
            path = f"{ASSETS}/{icon}"
            if reason := self._contents.absent(path):
                yield Problem("icon", file, key, f"{path} {reason}")
            elif TEMPLATE_ICON in self._contents.read(path):
                sentence = f"{path} is the template's icon: draw one of your own"
                yield Problem("icon", file, key, sentence, level="marketplace")

    def _source(self, file: str, data: dict[str, Any]) -> Iterator[Problem]:
        match data:
            case {"extra": {"python": {"source": str(source)}}}:
                if not (reason := self._contents.absent(source)):
                    yield from class_problems(self._contents, source)
                    return
                sentence = f"{source} {reason}: the SDK cannot load it"
            case _:
                sentence = "it is missing: the SDK does not know what to load"
        yield Problem("source", file, "extra.python.source", sentence)


def kinds_of(manifest: dict[str, Any]) -> dict[str, Any]:
    plugins = manifest.get("plugins")
    return plugins if isinstance(plugins, dict) else {}


def _switches(value: object, way: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where the value of an option is a yes or no without quotes."""
    if isinstance(value, dict) and isinstance(value.get("value"), bool):
        yield (*way, "value")
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from _switches(part, (*way, key))


def _name_at(path: tuple[str | int, ...], declared: object) -> str:
    """The name of the parameter that the path leads into; empty outside of parameters."""
    match path, declared:
        case ("parameters", int(number), *_), {"parameters": list(parameters)}:
            parameter = parameters[number]
            return str(parameter.get("name", "")) if isinstance(parameter, dict) else ""
    return ""


def _paths(value: object) -> list[str]:
    return [path for path in value if isinstance(path, str)] if isinstance(value, list) else []

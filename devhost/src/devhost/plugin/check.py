"""Checks a plugin's folder against all rules of `devhost.plugin.problems`, without starting the plugin.

A `Problem` is something that the daemon refuses, at once or when the plugin is used, or that only the marketplace
refuses. `devhost check` shows the problems, and `devhost package` packs no plugin that has one.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from devhost.errors import DeclarationError, ParameterError, naming
from devhost.plugin.contents import Contents, class_problems, file_problems
from devhost.plugin.declaration import MANIFEST, DeclarationModel, plugin_in
from devhost.plugin.problems import Problem
from devhost.plugin.rules import PROVIDERS, ManifestRules, faults, marketplace_problems
from devhost.protocol.wire import JsonObject
from devhost.text import load_yaml

ACCEPTABLE = ("secret", "forbidden-file")
"""Rules that Dify does not have and whose findings can be accepted, because they may be intended."""


@dataclass(frozen=True)
class CheckedPlugin:
    declarations: int
    contents: Contents
    problems: tuple[Problem, ...]
    unchecked: tuple[str, ...]
    """The kinds of the plugin's providers that were not checked."""

    @property
    def refusals(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.level == "refused")


def check_plugin(directory: Path, accepted: Collection[str] = (), *, marketplace: bool = False) -> CheckedPlugin:
    """Checks a plugin and returns its problems.

    Findings that `accepted` names as `RULE:FILE` become notices. With `marketplace`, problems that only the marketplace
    refuses are refusals. Raises `DeclarationError` if the manifest is missing or unreadable, and `ParameterError` if an
    accepted finding does not exist.
    """
    contents = Contents.of(plugin_in(directory))
    manifest = load_yaml(directory / MANIFEST)
    declarations = Declarations(contents, manifest)
    problems = *declarations.problems, *file_problems(contents, manifest), *marketplace_problems(manifest)
    names = {f"{problem.rule}:{problem.file}" for problem in problems if problem.rule in ACCEPTABLE}
    if unknown := sorted(set(accepted) - names):
        raise ParameterError(f"--accept {unknown[0]}: there is no such finding; {naming(sorted(names))}")

    def judged(problem: Problem) -> Problem:
        if f"{problem.rule}:{problem.file}" in accepted:
            return replace(problem, level="notice", sentence=f"accepted: {problem.sentence}")
        if marketplace and problem.level == "marketplace":
            return replace(problem, level="refused")
        return problem

    return CheckedPlugin(declarations.count, contents, tuple(map(judged, problems)), declarations.unchecked)


class Declarations:
    """Checks a plugin's manifest, its providers and their parts."""

    def __init__(self, contents: Contents, manifest: JsonObject) -> None:
        kinds = {}
        if isinstance(manifest.get("plugins"), dict):
            kinds = manifest["plugins"]
        elsewhere = ("models", "endpoints", "datasources", "triggers")  # devhost has no rules for these
        self.unchecked = tuple(kind for kind in elsewhere if kinds.get(kind))
        self.problems = [*faults(ManifestRules, MANIFEST, manifest)]
        self.count = 1
        self._contents = contents
        self._icons(MANIFEST, manifest)
        others = [*(["tools"] if kinds.get("tools") else []), *self.unchecked]
        if kinds.get("agent_strategies") and others:
            self._problem("kinds", MANIFEST, "plugins", f"agent_strategies share a plugin with {', '.join(others)}")
        if not kinds.get("agent_strategies") and not others:
            self._problem("kinds", MANIFEST, "plugins", "the plugin declares nothing")
        for kind, (provider, parts, part) in PROVIDERS.items():
            for path in _paths(kinds.get(kind)):
                # The SDK loads no code for the provider of strategies.
                declared = self._read(path, provider, has_code=kind != "agent_strategies")
                self._icons(path, declared.get("identity"))
                for path_of_part in _paths(declared.get(parts)):
                    self._read(path_of_part, part)

    def _problem(self, rule: str, file: str, key: str, sentence: str) -> None:
        self.problems.append(Problem(rule, file, key, sentence))

    def _read(self, path: str, kind: type[DeclarationModel], *, has_code: bool = True) -> JsonObject:
        """Reads a declaration and adds its problems and those of its Python file.

        Returns an empty object if the declaration cannot be read.
        """
        self.count += 1
        try:
            declared = load_yaml(self._contents.directory / path)
        except DeclarationError as error:
            self._problem("declaration", path, "", str(error).removeprefix(f"{self._contents.directory / path} "))
            return {}
        self.problems += faults(kind, path, declared)
        if reason := self._contents.absent(path):
            self._problem("declaration", path, "", f"it {reason}")
        match declared:
            case {"extra": {"python": {"source": str(source)}}} if has_code:
                if reason := self._contents.absent(source):
                    self._problem("source", path, "extra.python.source", f"{source} {reason}: the SDK cannot load it")
                else:
                    self.problems += class_problems(self._contents, source)
            case _ if has_code:
                sentence = "it is missing: the SDK does not know what to load"
                self._problem("source", path, "extra.python.source", sentence)
        return declared

    def _icons(self, file: str, holder: object) -> None:
        for key in ("icon", "icon_dark"):
            icon = None
            if isinstance(holder, dict):
                icon = holder.get(key)
            if not isinstance(icon, str) or not icon:
                continue
            path = f"_assets/{icon}"
            if reason := self._contents.absent(path):
                self._problem("icon", file, key, f"{path} {reason}")
            elif b"DIFY_MARKETPLACE_TEMPLATE_ICON" in self._contents.read(path):  # the template's icon has this marker
                sentence = f"{path} is the template's icon: draw one of your own"
                self.problems.append(Problem("icon", file, key, sentence, level="marketplace"))


def _paths(value: object) -> list[str]:
    if isinstance(value, list):
        return [path for path in value if isinstance(path, str)]
    return []

"""A plugin's folder by all rules of `rules/listed.py`, without starting it.

In: a folder. Out: a `Problem` for each rule that is broken: what the daemon would refuse, now or when the plugin is in
use, and what only the marketplace refuses. `devhost check` shows them, and `devhost package` packs nothing with one.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from devhost.errors import ParameterError
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
from devhost.plugin.declaration import ELSEWHERE, MANIFEST_FILE, Declarations, kinds_of
from devhost.plugin.nearest import plugin_in
from devhost.plugin.rules.declarations import marketplace_problems
from devhost.plugin.rules.listed import Level, Problem

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

"""A plugin's folder by all rules of `rules/listed.py`, without starting it.

In: a folder. Out: a `Problem` for each rule that is broken: what the daemon would refuse, now or when the plugin is in
use, and what only the marketplace refuses. `devhost check` shows them, and `devhost package` packs nothing with one.
"""

from dataclasses import dataclass
from pathlib import Path

from devhost.plugin.contents.dependencies import dependency_problems
from devhost.plugin.contents.files import Contents
from devhost.plugin.contents.forbidden import forbidden_problems, size_problems
from devhost.plugin.contents.papers import privacy_problems, readme_language_problems, readme_problems
from devhost.plugin.contents.python import compile_problems, entrypoint_problems
from devhost.plugin.contents.secret_scan import secret_problems
from devhost.plugin.declared import ELSEWHERE, MANIFEST_FILE, Declarations, kinds_of
from devhost.plugin.nearest import plugin_in
from devhost.plugin.rules.listed import Level, Problem
from devhost.plugin.rules.marketplace import marketplace_problems


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


def check_plugin(directory: Path) -> Checked:
    """DeclarationError without a manifest, or if it cannot be read."""
    contents = Contents.of(plugin_in(directory))
    declarations = Declarations(contents)
    manifest = declarations.read(MANIFEST_FILE)
    problems = (
        *declarations.problems(manifest),
        *entrypoint_problems(contents, manifest),
        *dependency_problems(contents),
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
    return Checked(declarations.files, contents, problems, unchecked)

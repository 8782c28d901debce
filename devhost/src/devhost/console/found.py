"""Finds what can be run in the folder where the console was started: scripts, flows, suites and plugins."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal

from devhost.errors import HostError
from devhost.flow.app_package import SUFFIX
from devhost.plugin.declaration import MANIFEST, nearest_strategy_plugin
from devhost.scenario import examples_of
from devhost.script import read_files
from devhost.text import open_file

type Kind = Literal["script", "flow script", "flow", "suite", "tool plugin", "strategy plugin", "model plugin"]
SIGNS: Mapping[Kind, re.Pattern[bytes]] = {
    "suite": re.compile(rb"^cases:", re.MULTILINE),
    "flow script": re.compile(rb"^flow:", re.MULTILINE),
    "flow": re.compile(rb"^kind: *app\b", re.MULTILINE),
    "script": re.compile(rb"^(?:turns|recorded|extends):", re.MULTILINE),
}
"""Patterns that identify a kind of YAML file by a key at the beginning of a line. The first match counts."""
PLUGINS: Mapping[Kind, re.Pattern[bytes]] = {
    "strategy plugin": re.compile(rb"^  agent_strategies:", re.MULTILINE),
    "tool plugin": re.compile(rb"^  tools:", re.MULTILINE),
    "model plugin": re.compile(rb"^  models:", re.MULTILINE),
}
DEEPEST = 3
"""How many levels of subfolders are searched."""
MOST_BYTES = 100_000
CASE = ".case.yaml"
"""The suffix of a script that a suite in the folder of runs plays. The script stays when its run is deleted."""
NOT_SEARCHED = frozenset({"dist", "node_modules", "site-packages", "tests"})  # "dist" holds copies to be packed


@dataclass(frozen=True)
class FoundFiles:
    """The files and plugins that were found, with paths as a person would type them."""

    files: Mapping[Kind, list[Path]]
    plugins: Sequence[Path]
    """Strategy plugins. The first plugin is used unless another is chosen."""
    examples: Sequence[Path]
    """The folders of the examples of the first strategy plugin."""

    @property
    def plugin(self) -> Path:
        """The strategy plugin to use. Raises ParameterError if there is none."""
        if self.plugins:
            return self.plugins[0]
        return nearest_strategy_plugin()

    def of(self, *kinds: Kind, own: bool | None = None) -> list[Path]:
        """Returns the files of these kinds, those below the current folder first.

        `own` selects files that are not examples if true, and only examples if false.
        """
        found = (path for kind in kinds for path in self.files.get(kind, ()))
        kept = (path for path in found if own in {None, not any(map(path.is_relative_to, self.examples))})
        return sorted(kept, key=lambda path: (path.is_absolute(), path))


def find(plugin: Path | None, runs: Path) -> FoundFiles:
    """Searches the current folder, the plugin's examples, and the suites in the folder of runs.

    `plugin` is a strategy plugin, or `None` for the nearest one.
    """
    try:
        usual = [plugin or nearest_strategy_plugin()]
    except HostError:
        usual = []
    found: dict[Kind, list[Path]] = {}
    kept = (file for file in runs.glob("*.yaml") if not file.name.endswith(CASE))
    examples = [shortened(examples_of(each)) for each in usual]
    of_examples = chain.from_iterable(map(_below, examples))
    for file in dict.fromkeys(map(shortened, [*_below(Path.cwd(), runs), *of_examples, *kept])):
        kind = kind_of(file)
        if kind is not None:
            found.setdefault(kind, []).append(file.parent if file.name == MANIFEST else file)
    plugins = dict.fromkeys((*map(shortened, usual), *found.get("strategy plugin", ())))
    return FoundFiles(found, list(plugins), examples)


def _below(folder: Path, besides: Path | None = None) -> Iterator[Path]:
    root = os.fspath(folder)
    left_out = None if besides is None else os.path.realpath(besides)
    for path, folders, names in os.walk(root):
        here = Path(path)
        kept = []
        if path.removeprefix(root).count(os.sep) < DEEPEST:
            kept = sorted(each for each in folders if not each.startswith(".") and each not in NOT_SEARCHED)
        folders[:] = [each for each in kept if os.path.realpath(here / each) != left_out]
        yield from (here / name for name in sorted(names) if name.endswith((".yaml", ".yml", SUFFIX)))


def kind_of(file: Path) -> Kind | None:
    """Returns the kind of a file, or `None` if the file is of no known kind or cannot be read."""
    if file.suffix == SUFFIX:
        return "flow"
    try:
        with open_file(file) as opened:
            begin = opened.read(MOST_BYTES)
    except (OSError, ValueError):
        return None
    signs = SIGNS
    if file.name == MANIFEST:
        signs = PLUGINS
    return next((kind for kind, sign in signs.items() if sign.search(begin)), None)


QUERY = re.compile(rb"^query:", re.MULTILINE)


def asks(script: Path) -> bool:
    """Returns whether the script or a script that it extends has a question.

    Only `devhost fork` can use a script without a question. A script that cannot be read counts as having one, so that
    its form reports the error.
    """
    try:
        with open_file(script) as opened:
            if QUERY.search(opened.read(MOST_BYTES)):
                return True
        return any("query" in each.model_fields_set for each in read_files(script, "strategy"))
    except (HostError, OSError, ValueError):
        return True


def shortened(file: Path) -> Path:
    """Returns the path as a person would type it: relative if it is below the current folder, absolute otherwise."""
    relative = os.path.relpath(file)
    if relative.startswith(os.pardir):
        return file.resolve()
    return Path(relative)


def label_of(path: Path) -> str:
    """Returns a label for a file or folder: its name, followed by its parent folder relative to the current one."""
    place = os.path.relpath(path.parent)
    name = path.stem or path.absolute().name
    if place == os.curdir:
        return name
    return f"{name} · {place}"


def own_tools(script: Path) -> tuple[Path, ...]:
    """Returns the tool plugin whose folder contains the script, as is the case for an example."""
    folders = script.absolute().parents
    manifest = next((folder / MANIFEST for folder in folders if (folder / MANIFEST).is_file()), None)
    if manifest is None or kind_of(manifest) != "tool plugin":
        return ()
    return (shortened(manifest.parent),)

"""The files of cases that the console knows of. In: the plugin and the folder of runs. Out: their paths."""

import os
from collections.abc import Iterator
from pathlib import Path

from devhost.errors import HostError
from devhost.plugin.nearest import nearest_strategy_plugin
from devhost.protocol.golang.values import well_formed
from devhost.scenario.scenario import examples_of

EVALUATION, CASES = "evaluation.yaml", "cases.yaml"
SCRIPT_OF_A_CASE = ".case.yaml"
"""The end of a recorded script's name, which stands beside the cases."""


def known_suites(folder: Path, plugin: Path | None) -> list[Path]:
    """Those of the plugin's examples, then those of the folder of runs."""
    return [*filter(_has_an_address, _of_examples(plugin)), *cases_files(folder)]


def cases_files(folder: Path) -> list[Path]:
    found = (shortened(file) for file in folder.glob("*.yaml") if not file.name.endswith(SCRIPT_OF_A_CASE))
    return sorted(filter(_has_an_address, found))


def _has_an_address(file: Path) -> bool:
    """A path that is not UTF-8 cannot stand in one."""
    return well_formed(str(file)) == str(file)


def _of_examples(plugin: Path | None) -> Iterator[Path]:
    try:
        directory = nearest_strategy_plugin(Path.cwd()) if plugin is None else plugin
    except HostError:
        return
    for file in sorted(examples_of(directory).glob(f"*/{EVALUATION}")):
        yield shortened(file)


def shortened(file: Path) -> Path:
    """From the current folder, if the file is in it: as a person would type it."""
    relative = os.path.relpath(file)
    return file if relative.startswith(os.pardir) else Path(relative)

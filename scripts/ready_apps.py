"""Writes copies of the example apps that Dify imports without a "Plugin load error" to `dist/workflows/`.

    python -m scripts.ready_apps [PACKAGE…]

The copies identify the plugins as Dify does, with the checksums of their packages. The packages are built from the
current repository, as by `make package`, or are the given files. A signature changes the checksum. `make package` calls
this script.
"""

import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from devhost.package import packed
from devhost.plugin.contents import Contents
from scripts.example_apps import APPS, ROOT, checksum, written
from scripts.stage import PLUGIN, stage, stage_example

READY = ROOT / "dist" / "workflows"
OWN_FLOW = "workflow.yml"
"""The file name of an example's own app."""


def packages() -> Mapping[str, bytes]:
    """Return the packages of the plugin and of the examples, by the name of the folder.

    Raises:
        ValueError: there are files that git does not know.
    """
    examples = [main.parent.name for main in sorted(ROOT.glob("examples/*/main.py"))]
    with tempfile.TemporaryDirectory() as home:
        folders = {name: Path(home) / name for name in (PLUGIN, *examples)}
        stage(folders[PLUGIN])
        for name in examples:
            stage_example(name, folders[name])
        return {name: packed(Contents.of(folder)) for name, folder in folders.items()}


def ready_apps(checksums: Mapping[str, str]) -> Mapping[str, str]:
    """Return the text of each app, by the name of its copy."""
    apps = {}
    for file in sorted(ROOT.glob(APPS)):
        name = file.name
        if name == OWN_FLOW:
            name = f"{file.parent.name}.yml"
        apps[name] = written(file.read_text("utf-8"), checksums)
    return apps


def main(given: Sequence[str], target: Path = READY) -> int:
    try:
        made = packages().values()
    except ValueError as error:
        sys.stderr.write(f"no apps: {error}\n")
        return 1
    checksums = dict(map(checksum, made))
    checksums |= dict(checksum(Path(package).read_bytes()) for package in given)
    target.mkdir(parents=True, exist_ok=True)
    apps = ready_apps(checksums)
    for name, text in apps.items():
        (target / name).write_text(text, "utf-8")
    sys.stdout.write(f"{target}: {len(apps)} apps to import, which name these packages\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""What a person chose last. In: the folder of runs. Out: the plugin of the newest run that a form started."""

from pathlib import Path

from devhost.console.runs.folder import SETUP, RunFolder
from devhost.console.runs.setup import Setup
from devhost.plugin.nearest import MANIFEST


def last_plugin(folder: RunFolder, since: float) -> Path | None:
    """None if no run was started since then, in seconds since 1970, or if the plugin is gone."""
    for name in folder.names():
        file = folder.beside(name, SETUP)
        setup = Setup.known(file) if file.is_file() and file.stat().st_mtime >= since else None
        if setup is not None and setup.kind == "chat":
            return setup.plugin if setup.plugin is not None and (setup.plugin / MANIFEST).is_file() else None
    return None

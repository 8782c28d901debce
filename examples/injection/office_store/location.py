"""The directory of the database.

The environment variable names it, else it is `data/` in the plugin's own folder if that can be written (in a packaged
plugin it often cannot), else a private temporary directory of this process.
"""

import os
import tempfile
from functools import cache
from pathlib import Path

from .errors import StoreUnavailableError

VARIABLE = "OFFICE_DIRECTORY"


def database_directory(plugin_folder: Path) -> Path:
    wish = os.environ.get(VARIABLE, "").strip()
    if not wish:
        own = plugin_folder / "data"
        return own if _is_writable(own) else _temporary_directory()
    directory = Path(wish)
    if not directory.is_absolute():
        raise StoreUnavailableError(f"{VARIABLE} is '{directory}'; give an absolute path of a directory.")
    if not _is_writable(directory):
        raise StoreUnavailableError(f"{VARIABLE} is '{directory}'; the plugin cannot write to it.")
    return directory


def _is_writable(directory: Path) -> bool:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(directory, os.W_OK | os.X_OK)


@cache
def _temporary_directory() -> Path:
    return Path(tempfile.mkdtemp(prefix="office-"))

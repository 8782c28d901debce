"""The directory of the database.

The provider's credential names it, else it is `data/` in the plugin's own folder if that can be written (in a packaged
plugin it often cannot), else a private temporary directory of this process.
"""

import os
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from .errors import StoreUnavailableError

CREDENTIAL = "database_directory"


def database_directory(plugin_folder: Path, credentials: Mapping[str, object]) -> Path:
    wish = str(credentials.get(CREDENTIAL) or "").strip()
    if not wish:
        own = plugin_folder / "data"
        return own if _is_writable(own) else _temporary_directory()
    directory = Path(wish)
    if not directory.is_absolute():
        raise StoreUnavailableError(f"{CREDENTIAL} is '{directory}'; give an absolute path of a directory.")
    if not _is_writable(directory):
        raise StoreUnavailableError(f"{CREDENTIAL} is '{directory}'; the plugin cannot write to it.")
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

"""The directory of the index.

The provider's credential names it, else the environment, else it is `data/` in the plugin's own folder if that can be
written (in a packaged plugin it often cannot), else a private temporary directory of this process.
"""

import os
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from .errors import IndexUnavailableError

CREDENTIAL = "index_directory"
ENVIRONMENT_VARIABLE = "HELPDESK_INDEX_DIRECTORY"


def index_directory(plugin_folder: Path, credentials: Mapping[str, object], environment: Mapping[str, str]) -> Path:
    for name, wish in (
        (CREDENTIAL, credentials.get(CREDENTIAL)),
        (ENVIRONMENT_VARIABLE, environment.get(ENVIRONMENT_VARIABLE)),
    ):
        if wish is not None and str(wish).strip():
            return _named_directory(name, Path(str(wish).strip()))
    own = plugin_folder / "data"
    return own if _made_writable(own) else _temporary_directory()


def _named_directory(name: str, directory: Path) -> Path:
    """A directory that the operator chose; another one in its place would hide a mistake."""
    if not directory.is_absolute():
        raise IndexUnavailableError(f"{name} is '{directory}'; give an absolute path of a directory.")
    if not _made_writable(directory):
        raise IndexUnavailableError(
            f"{name} is '{directory}', but the plugin cannot write to it; give a writable directory."
        )
    return directory


def _made_writable(directory: Path) -> bool:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(directory, os.W_OK | os.X_OK)


@cache
def _temporary_directory() -> Path:
    """One per process, with a random name and no access for others, who could prepare a directory of a known name."""
    return Path(tempfile.mkdtemp(prefix="helpdesk-"))

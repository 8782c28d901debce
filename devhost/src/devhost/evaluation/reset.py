"""What a case does before each of its runs, so that tools that act find the same each time."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, PlainValidator
from pydantic_core import PydanticCustomError

from devhost.errors import SuiteError
from devhost.models.scripted.script import listed
from devhost.process.command import run_command


@dataclass(frozen=True)
class CopiedFile:
    """Both from the folder of the cases."""

    source: Path
    to: Path

    def __str__(self) -> str:
        return f"copy {self.source} to {self.to}"


type Step = str | CopiedFile
"""A text is a command of the shell."""


def _step(value: object) -> Step:
    match value:
        case str() if value.strip():
            return value
        case {"copy": str(source), "to": str(to), **others} if not others:
            return CopiedFile(Path(source), Path(to))
    raise PydanticCustomError("reset", "should be a command, or {copy: FILE, to: FILE}")


type Reset = Annotated[tuple[Annotated[Step, PlainValidator(_step)], ...], BeforeValidator(listed)]


def reset(steps: Reset, folder: Path) -> None:
    """One after the other, in the folder of the cases; SuiteError says which one failed, how and where."""
    for step in steps:
        if why := _copied(step, folder) if isinstance(step, CopiedFile) else _run(step, folder):
            raise SuiteError(f"its reset failed in {folder.absolute()}: {step}: {why}")


def _copied(file: CopiedFile, folder: Path) -> str:
    """Why it could not be; a file that is there is written over in its place, as programs may have it open."""
    try:
        shutil.copyfile(folder / file.source, folder / file.to)
    except OSError as error:
        return str(error)
    return ""


def _run(command: str, folder: Path) -> str:
    """Why it failed."""
    done = run_command(["/bin/sh", "-c", command], folder)
    if done.exit_code == 0:
        return ""
    return f"exit code {done.exit_code}{done.last_words and f'\n{done.last_words}'}"

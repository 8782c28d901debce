"""What a case does before each of its runs, so that tools that act find the same each time."""

import shutil
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field

from devhost.errors import SuiteError
from devhost.models.scripted.script import ScriptModel, Words, listed, one_sentence
from devhost.process.command import why_it_failed


class CopiedFile(ScriptModel):
    """Both from the folder of the cases."""

    source: Path = Field(alias="copy")
    to: Path

    def __str__(self) -> str:
        return f"copy {self.source} to {self.to}"


type Step = Annotated[Words | CopiedFile, one_sentence("should be a command, or {copy: FILE, to: FILE}")]
"""A text is a command of the shell."""
type Reset = Annotated[tuple[Step, ...], BeforeValidator(listed)]


def reset(steps: Reset, folder: Path) -> None:
    """One after the other, in the folder of the cases; SuiteError says which one failed, how and where."""
    for step in steps:
        if isinstance(step, CopiedFile):
            why = _copied(step, folder)
        else:
            why = why_it_failed(["/bin/sh", "-c", step], folder)
        if why:
            raise SuiteError(f"its reset failed in {folder.absolute()}: {step}: {why}")


def _copied(file: CopiedFile, folder: Path) -> str:
    """Why it could not be; a file that is there is written over in its place, as programs may have it open."""
    try:
        shutil.copyfile(folder / file.source, folder / file.to)
    except OSError as error:
        return str(error)
    return ""

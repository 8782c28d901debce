"""The reset of a case before each run, so that tools with side effects find the same state every time."""

import shutil
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field

from devhost.errors import SuiteError
from devhost.models.scripted.script import ScriptModel, Words, listed, one_sentence
from devhost.process.command import why_it_failed


class CopiedFile(ScriptModel):
    """A file to copy. The paths `copy` and `to` are relative to the folder of the cases."""

    source: Path = Field(alias="copy")
    to: Path

    def __str__(self) -> str:
        return f"copy {self.source} to {self.to}"


type Step = Annotated[Words | CopiedFile, one_sentence("should be a command, or {copy: FILE, to: FILE}")]
"""One step of a reset. A text is a shell command."""
type Reset = Annotated[tuple[Step, ...], BeforeValidator(listed)]
"""The steps of a reset. A single step need not be a list."""


def reset(steps: Reset, folder: Path) -> None:
    """Runs the steps one after another in the folder of the cases. Raises SuiteError if a step fails."""
    for step in steps:
        if isinstance(step, CopiedFile):
            why = _copied(step, folder)
        else:
            why = why_it_failed(["/bin/sh", "-c", step], folder)
        if why:
            raise SuiteError(f"the reset failed in {folder.absolute()}: {step}: {why}")


def _copied(file: CopiedFile, folder: Path) -> str:
    """Copies a file and returns the error, if there is one.

    An existing file is overwritten and not replaced, because programs may have it open.
    """
    try:
        shutil.copyfile(folder / file.source, folder / file.to)
    except OSError as error:
        return str(error)
    return ""

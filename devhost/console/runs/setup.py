"""How a run was started: what a form held, in a file beside the trace.

In: the values of a form. Out: a frozen `Setup`, which is written, read and turned into a command's arguments.
"""

import contextlib
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from devhost.console.runs.folder import is_name
from devhost.errors import ConsoleError
from devhost.protocol.golang.values import well_formed
from devhost.text.user_file import read_file

type Text = Annotated[str, AfterValidator(well_formed)]
"""A script, or the trace of a run that is forked, may hold half a surrogate pair."""


def _name_of_a_run(text: str) -> str:
    if text and not is_name(text):
        raise ValueError("not the name of a run")
    return text


class Model(BaseModel):
    """A scripted model if `scripted`, else one behind an API; the key stays in the environment."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    scripted: bool = True
    api: Literal["responses", "chat"] | None = None
    name: str | None = None
    completion: dict[str, str] = Field(default_factory=dict)
    """As typed: KEY=VALUE."""


class Setup(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["chat", "fork"] = "chat"
    question: Text = ""
    """The first one."""
    plugin: Path | None = None
    """None for the nearest one."""
    example: str | None = None
    scenario: str | None = None
    script: Path | None = None
    tools: tuple[Path, ...] = ()
    strategy: str | None = None
    model: Model = Model()
    parameters: dict[str, Text] = Field(default_factory=dict)
    """As typed: KEY=VALUE."""
    files: tuple[Path, ...] = ()
    of: Annotated[str, AfterValidator(_name_of_a_run)] = ""
    """The run that a fork goes on from; its page is linked."""
    turn: int | None = None
    """Of that run; None for the last one."""
    at: int | None = None
    """How many rounds stay as recorded."""
    live_tools: bool = False
    """Whether the tools of a fork run, instead of answering from the recording."""

    def write(self, file: Path) -> None:
        """ConsoleError if the folder cannot be written; no half of it stays."""
        try:
            file.write_text(self.model_dump_json(indent=2, exclude_defaults=True) + "\n", encoding="utf-8")
        except OSError as error:
            with contextlib.suppress(OSError):
                file.unlink()
            raise ConsoleError(f"{file} cannot be written: {error.strerror}") from error

    @classmethod
    def known(cls, file: Path) -> "Setup | None":
        """None for a run that no form started, and for a file of another version."""
        try:
            return cls.read(file)
        except (OSError, ValueError):
            return None

    @classmethod
    def read(cls, file: Path) -> "Setup":
        return cls.model_validate_json(read_file(file))

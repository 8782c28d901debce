"""The runs of a folder: each is a trace, with what the console knows of it beside it."""

import contextlib
import re
import secrets
import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from rich.text import Text

from devhost.errors import ConsoleError, UnknownRunError
from devhost.golang import well_formed
from devhost.plugin.nearest import MANIFEST
from devhost.terminal.tables import printable
from devhost.text import open_file, read_file

# The folder in which the console keeps its runs, a trace each. Traces that a command wrote there are runs too.

TRACE, SETUP, OUTPUT = ".jsonl", ".setup.json", ".output.txt"
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,119}")
"""Of a run; it stands in addresses, and is never a path."""


RESULTS = (".results", ".results.previous")
"""Ends of the names of an evaluation's results, which are no traces."""


def is_name(text: str) -> bool:
    """Whether a run can have this name."""
    return NAME.fullmatch(text) is not None and not text.endswith(RESULTS)


class RunFolder:
    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def opened(cls, path: Path) -> Self:
        """The folder, made if it is missing; ConsoleError if runs cannot be written there."""
        try:
            path.mkdir(parents=True, exist_ok=True)
            with TemporaryFile(dir=path):
                return cls(path)
        except OSError as error:
            raise ConsoleError(f"--runs {path}: no run can be written there: {error.strerror}") from error

    def names(self) -> Sequence[str]:
        """Of all runs, the newest first: of those that have a trace, and of those whose setup is all there is yet."""
        found = {
            file.name.removesuffix(ending): file.stat().st_mtime_ns
            for ending in (SETUP, TRACE)
            for file in self.path.glob(f"*{ending}")
            if is_name(file.name.removesuffix(ending))
        }
        return sorted(found, key=lambda name: (found[name], name), reverse=True)

    def new_name(self, about: str) -> str:
        """Of a run that begins now: the time, what it is about, and a few random letters."""
        words = re.sub(r"[^A-Za-z0-9_]+", "-", about).strip("-")[:40] or "run"
        return f"{datetime.now().astimezone():%Y%m%d-%H%M%S}-{words}-{secrets.token_hex(2)}"

    def trace(self, name: str) -> Path:
        """The trace of a run that exists, although it may not have one yet; UnknownRunError for any other name."""
        if is_name(name) and any(self.beside(name, ending).is_file() for ending in (TRACE, SETUP)):
            return self.beside(name, TRACE)
        raise UnknownRunError(f"there is no run {name!r} in {self.path}")

    def beside(self, name: str, ending: str) -> Path:
        return self.path / f"{name}{ending}"


# What a command printed, in a file beside its trace.

MOST_BYTES = 40_000
"""A plugin can print without end."""


def last_printed(file: Path) -> str:
    """The last `MOST_BYTES`, without colours and control characters; empty if there is no file to read."""
    try:
        with open_file(file) as output:
            output.seek(max(0, output.seek(0, 2) - MOST_BYTES))
            last = output.read()
    except OSError:
        return ""
    return printable(Text.from_ansi(last.decode(errors="replace")).plain).strip()


# Paths as a person types them.


def typed_path(text: str) -> Path:
    """`~` is the person's home; with the name of a user that does not exist, it is a character like any other."""
    path = Path(text.strip())
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def refusal(path: Path) -> str:
    """Why no file can have this path, such as one that is too long; empty if one can."""
    try:
        path.exists()
    except OSError as error:
        return f"{path}: {error.strerror}"
    return f"{path}: a path cannot hold a NUL character" if "\0" in str(path) else ""


# How a run was started: what a form held, in a file beside the trace.

type WellFormed = Annotated[str, AfterValidator(well_formed)]
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
    question: WellFormed = ""
    """The first one."""
    plugin: Path | None = None
    """None for the nearest one."""
    example: str | None = None
    scenario: str | None = None
    script: Path | None = None
    tools: tuple[Path, ...] = ()
    strategy: str | None = None
    model: Model = Model()
    parameters: dict[str, WellFormed] = Field(default_factory=dict)
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


# The command of a run: `devhost chat`, as a person would type it.
#
# The question is no argument: it is typed after it.


def chat_arguments(setup: Setup) -> tuple[str, ...]:
    return ("chat", *_of_scenario(setup), *model_arguments(setup.model))


def child_arguments(setup: Setup, trace: Path) -> tuple[str, ...]:
    """Those of the console's child, which writes a trace and reads what a program writes."""
    return (*chat_arguments(setup), "--trace", str(trace), "--json-lines", "--no-color")


def typed_command(setup: Setup) -> str:
    """For a shell."""
    return shlex.join(("devhost", *chat_arguments(setup)))


def _of_scenario(setup: Setup) -> Iterator[str]:
    one_each = {
        "--plugin": setup.plugin,
        "--example": setup.example,
        "--scenario": setup.scenario,
        "--script": setup.script,
        "--strategy": setup.strategy,
    }
    for option, value in one_each.items():
        if value is not None:
            yield from (option, str(value))
    for folder in setup.tools:
        yield from ("--tools", str(folder))
    yield from assignments("--param", setup.parameters)
    for file in setup.files:
        yield from ("--file", str(file))


def model_arguments(model: Model) -> Iterator[str]:
    if model.scripted:
        yield "--scripted"
        return
    for option, value in {"--api": model.api, "--model": model.name}.items():
        if value is not None:
            yield from (option, value)
    yield from assignments("--completion", model.completion)


def assignments(option: str, values: Mapping[str, str]) -> Iterator[str]:
    for name, text in values.items():
        yield from (option, f"{name}={text}")


# What a person chose last.


def last_plugin(folder: RunFolder, since: float) -> Path | None:
    """None if no run was started since then, in seconds since 1970, or if the plugin is gone."""
    for name in folder.names():
        file = folder.beside(name, SETUP)
        setup = Setup.known(file) if file.is_file() and file.stat().st_mtime >= since else None
        if setup is not None and setup.kind == "chat":
            return setup.plugin if setup.plugin is not None and (setup.plugin / MANIFEST).is_file() else None
    return None


# The command of a fork: `devhost fork`, as a person would type it.

INSTRUCTION = "instruction"


def fork_arguments(setup: Setup, trace: Path) -> tuple[str, ...]:
    """`trace`: of the run that goes on."""
    return ("fork", str(trace), *_of_fork(setup), *model_arguments(setup.model))


def fork_child_arguments(setup: Setup, origin: Path, trace: Path) -> tuple[str, ...]:
    """Those of the console's child, which writes a trace."""
    return (*fork_arguments(setup, origin), "--trace", str(trace), "--no-color")


def typed_fork(setup: Setup, trace: Path) -> str:
    """For a shell."""
    return shlex.join(("devhost", *fork_arguments(setup, trace)))


def _of_fork(setup: Setup) -> Iterator[str]:
    yield from ("--at", str(setup.at or 0))
    one_each = {
        "--question": setup.turn,
        "--plugin": setup.plugin,
        "--script": setup.script,
        "--instruction": setup.parameters.get(INSTRUCTION),
    }
    for option, value in one_each.items():
        if value is not None:
            yield from (option, str(value))
    yield from assignments("--param", {name: text for name, text in setup.parameters.items() if name != INSTRUCTION})
    if setup.live_tools:
        yield "--live-tools"
        if setup.example:
            yield from ("--example", setup.example)
        for folder in setup.tools:
            yield from ("--tools", str(folder))

"""How a run was started: the values of its form, in a file beside its trace, and the command that they stand for."""

import contextlib
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from devhost.errors import ConsoleError
from devhost.golang import well_formed
from devhost.text import read_file

SETUP = ".setup.json"
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,119}")
"""Of a run; it stands in addresses, and is never a path."""
RESULTS = (".results", ".results.previous")
"""Ends of the names of an evaluation's results, which are not traces."""
EXAMPLE, SCRIPT, NO_SCRIPT = "example:", "script", "none"
"""Where the scenario comes from: `example:NAME` or `example:NAME/SCENARIO`, a script file, or nowhere."""
TYPED = "p."
"""Before the name of a parameter: its text."""
QUESTION, INSTRUCTION = "query", "instruction"

type Values = Mapping[str, str]
"""What a form holds, by the name of the field. A field for several paths has one a line."""
type WellFormed = Annotated[str, AfterValidator(well_formed)]
"""A script, or the trace of a run that is forked, may hold half a surrogate pair."""


def is_name(text: str) -> bool:
    """Whether a run can have this name."""
    return NAME.fullmatch(text) is not None and not text.endswith(RESULTS)


def _name_of_a_run(text: str) -> str:
    if text and not is_name(text):
        raise ValueError("not the name of a run")
    return text


class Setup(BaseModel):
    """The key of a real model stays in the environment."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["chat", "fork"] = "chat"
    of: Annotated[str, AfterValidator(_name_of_a_run)] = ""
    """The run that a fork goes on from; its page is linked."""
    values: dict[str, WellFormed] = Field(default_factory=dict)
    """Those that are not the form's own; of parameters those that were changed."""

    @property
    def question(self) -> str:
        """The first one."""
        return self.values.get(TYPED + QUESTION, "")

    @property
    def plugin(self) -> Path | None:
        """None for the nearest one."""
        return path_in(self.values, "plugin")

    @property
    def script(self) -> Path | None:
        return path_in(self.values, "script")

    @property
    def tools(self) -> tuple[Path, ...]:
        return paths_in(self.values, "tools")

    @property
    def example(self) -> tuple[str | None, str | None]:
        return example_in(self.values)

    @property
    def about(self) -> str:
        """What it runs, in a word."""
        example, scenario = self.example
        strategy = self.values.get("strategy", "")
        return f"{strategy or 'run'}-again" if self.kind == "fork" else scenario or example or strategy or "run"

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
            return cls.model_validate_json(read_file(file))
        except (OSError, ValueError):
            return None


# What the values say.


def typed_path(text: str) -> Path:
    """`~` is the person's home; with the name of a user that does not exist, it is a character like any other."""
    path = Path(text.strip())
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def lines_in(values: Values, name: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in values.get(name, "").split("\n") if line.strip())


def paths_in(values: Values, name: str) -> tuple[Path, ...]:
    return tuple(map(typed_path, lines_in(values, name)))


def path_in(values: Values, name: str) -> Path | None:
    return typed_path(values[name]) if values.get(name) else None


def example_in(values: Values) -> tuple[str | None, str | None]:
    """The name of the example, and that of its scenario."""
    source = values.get("source", "")
    if not source.startswith(EXAMPLE):
        return None, None
    name, _, scenario = source.removeprefix(EXAMPLE).partition("/")
    return name, scenario or None


def typed_in(values: Values) -> dict[str, str]:
    """The texts of parameters, by their names, without the question."""
    texts = {name.removeprefix(TYPED): text for name, text in values.items() if name.startswith(TYPED)}
    texts.pop(QUESTION, None)
    return texts


# The command of a run, as a person would type it. The question of a chat is not an argument: it is typed after it.


def chat_arguments(values: Values) -> tuple[str, ...]:
    example, scenario = example_in(values)
    return (
        "chat",
        *_one_each({"--plugin": path_in(values, "plugin"), "--example": example, "--scenario": scenario}),
        *_one_each({"--script": path_in(values, "script"), "--strategy": values.get("strategy")}),
        *_each("--tools", paths_in(values, "tools")),
        *_each("--param", _assignments(typed_in(values))),
        *_each("--file", paths_in(values, "files")),
        *_model(values, real=values.get("real") == "yes"),
    )


def fork_arguments(values: Values, trace: Path) -> tuple[str, ...]:
    """`trace`: of the run that goes on. A form knows turn and example, whether they are needed or not."""
    texts = typed_in(values)
    example, _ = example_in(values)
    live = ("--live-tools", *_one_each({"--example": example}), *_each("--tools", paths_in(values, "tools")))
    return (
        "fork",
        str(trace),
        *_one_each({"--at": values.get("at") or "0", "--question": values.get("turn")}),
        *_one_each({"--plugin": path_in(values, "plugin"), "--script": path_in(values, "script")}),
        *_one_each({"--instruction": texts.pop(INSTRUCTION, None)}, keep_empty=True),
        *_each("--param", _assignments(texts)),
        *(live if values.get("live") == "yes" else ()),
        *_model(values, real=values.get("answers") == "real"),
    )


def typed(arguments: tuple[str, ...]) -> str:
    """For a shell."""
    return shlex.join(("devhost", *arguments))


def _model(values: Values, *, real: bool) -> tuple[str, ...]:
    if not real:
        return ("--scripted",)
    named = _one_each({"--api": values.get("api"), "--model": values.get("model")})
    return (*named, *_each("--completion", lines_in(values, "completion")))


def _one_each(options: Mapping[str, object], *, keep_empty: bool = False) -> Iterator[str]:
    for option, value in options.items():
        if value or (keep_empty and value is not None):
            yield from (option, str(value))


def _each(option: str, values: tuple[object, ...]) -> Iterator[str]:
    for value in values:
        yield from (option, str(value))


def _assignments(texts: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{name}={text}" for name, text in texts.items())

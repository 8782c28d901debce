"""A file of cases, and the cases and columns of an evaluation."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, PositiveInt, ValidationError
from pydantic_core import ErrorDetails

from devhost.errors import SuiteError
from devhost.evaluation.checks import Expected
from devhost.evaluation.expected import (
    Bounds,
    CallsExpected,
    Checked,
    JudgeExpected,
    SourcesExpected,
    TextExpected,
    Texts,
)
from devhost.models.scripted.script import SomeTurns, Words, findings
from devhost.protocol.wire import JsonObject
from devhost.text import json_value, load_yaml

type _JsonObject = Annotated[dict[str, Any], BeforeValidator(json_value)]
type Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
type _Name = Annotated[str, Field(min_length=1, max_length=120)]
"""Of a case or a column; it stands in tables, in JUnit and in --case."""


class ColumnFile(Checked):
    name: _Name | None = None
    strategy: Texts = ()
    """With several, there is a column for each."""
    model: Texts = ()
    params: _JsonObject = Field(default_factory=dict)
    completion: _JsonObject = Field(default_factory=dict)
    """Parameters of the model."""


class Case(Checked):
    name: _Name
    query: Words | None = None
    """By default, the question of the case's script."""
    scenario: Words | None = None
    """A script of the example: a file of its scenarios/."""
    script: Path | dict[str, Any] | None = None
    """A script file, from the folder of the cases; or a script as it would stand in one."""
    turns: SomeTurns | None = None
    """A script that is only turns."""
    files: tuple[Path, ...] = ()
    params: _JsonObject = Field(default_factory=dict)
    variables: _JsonObject = Field(default_factory=dict)
    repeats: PositiveInt = 1
    rate: Share = 1.0
    """The share of the repeats that must fit. Both have the values of the file where a case has none."""
    expect: Expected

    def within(self, suite: "SuiteFile", folder: Path) -> Self:
        """With the defaults of its file, and paths from the file's folder."""
        defaults = {name: getattr(suite, name) for name in {"repeats", "rate"} - self.model_fields_set}
        script = folder / self.script if isinstance(self.script, Path) else self.script
        files = tuple(folder / path for path in self.files)
        return self.model_copy(update={**defaults, "script": script, "files": files})


class SuiteFile(Checked):
    description: str = ""
    example: str | None = None
    tools: tuple[Path, ...] = ()
    """Folders of tool plugins, from the folder of the cases."""
    params: _JsonObject = Field(default_factory=dict)
    """For all cases, over those of their scripts."""
    columns: tuple[ColumnFile, ...] = (ColumnFile(),)
    repeats: PositiveInt = 1
    rate: Share = 1.0
    threshold: Share = 1.0
    cases: Annotated[tuple[Case, ...], Field(min_length=1)]


OWNERS: Mapping[str, type[Checked]] = {
    "the file": SuiteFile,
    "columns": ColumnFile,
    "expect": Expected,
    "text": TextExpected,
    "calls": CallsExpected,
    "sources": SourcesExpected,
    "judge": JudgeExpected,
    **dict.fromkeys(("rounds", "tokens", "seconds"), Bounds),
}
"""By the key under which each stands."""


def read_suite_file(file: Path) -> SuiteFile:
    data = load_yaml(file)
    try:
        suite = SuiteFile.model_validate(data)
    except ValidationError as error:
        raise SuiteError("\n".join(f"{file}: {sentence}" for sentence in _sentences(error, data))) from error
    for name, times in Counter(case.name for case in suite.cases).items():
        if times > 1:
            raise SuiteError(f"{file}: {times} cases are named {name!r}: give each a name of its own")
    return suite


def _sentences(error: ValidationError, data: dict[str, Any]) -> Iterator[str]:
    for finding in findings(error):
        where = list(finding["loc"])
        if where and where[0] == "cases" and len(where) > 1:
            where[:2] = [_case(data, where[1])]
        # pydantic adds which branch of a union it tried.
        path = ", ".join(_part(part) for part in where if part not in {"Path", "dict[str,any]"})
        yield f"{path}: {_words(finding, where)}"


def _case(data: dict[str, Any], number: int | str) -> str:
    """By its name, or by its place if it has none."""
    match data["cases"]:
        case [*cases] if isinstance(number, int) and isinstance(cases[number], dict) and cases[number].get("name"):
            return f"case {cases[number]['name']!r}"
    return f"case {int(number) + 1}"


def _there_are(around: list[int | str]) -> str:
    """The keys of what has the unknown one; a script's own are not listed."""
    names = [part for part in around if isinstance(part, str)]
    owner = names[-1] if names else "the file"
    model = Case if owner.startswith("case ") else OWNERS.get(owner)
    return "" if model is None else f"; there are: {', '.join(model.model_fields)}"


def _part(part: int | str) -> str:
    return f"number {part + 1}" if isinstance(part, int) else part


def _words(finding: ErrorDetails, where: list[int | str]) -> str:
    match finding["type"]:
        case "extra_forbidden":
            return f"unknown key{_there_are(where[:-1])}"
        case "missing":
            return "this key is required"
        case "too_short":
            return "should have at least one entry"
    return finding["msg"]


# The cases and columns of an evaluation.


@dataclass(frozen=True)
class Column:
    """One way to run every case."""

    name: str
    strategy: str | None = None
    """None for that of the case's script, else the plugin's first."""
    model: str | None = None
    """None for the default. A scripted model takes this name."""
    params: JsonObject = field(default_factory=dict)
    completion: JsonObject = field(default_factory=dict)


@dataclass(frozen=True)
class Suite:
    file: Path
    description: str
    example: str | None
    tools: tuple[Path, ...]
    params: JsonObject
    threshold: float
    columns: tuple[Column, ...]
    cases: tuple[Case, ...]

    def only(self, cases: Sequence[str], columns: Sequence[str]) -> "Suite":
        """Those whose names fit one of the patterns (* and ?); without patterns all."""
        return replace(
            self,
            cases=_fitting("--case", cases, self.cases, self.file),
            columns=_fitting("--column", columns, self.columns, self.file),
        )

    def repeated(self, repeats: int | None) -> "Suite":
        """Every case so often; None leaves them as they are written."""
        if repeats is None:
            return self
        return replace(self, cases=tuple(case.model_copy(update={"repeats": repeats}) for case in self.cases))

    @classmethod
    def read(cls, file: Path) -> "Suite":
        read = read_suite_file(file)
        columns = tuple(column for each in read.columns for column in _columns(each))
        names = [column.name for column in columns]
        for name in names:
            if names.count(name) > 1:
                raise SuiteError(f"{file}: {names.count(name)} columns are named {name!r}: give each a name of its own")
        if not columns:
            raise SuiteError(f"{file}: columns: should have at least one entry")
        return cls(
            file=file,
            description=read.description,
            example=read.example,
            tools=tuple(file.parent / folder for folder in read.tools),
            params=read.params,
            threshold=read.threshold,
            columns=columns,
            cases=tuple(case.within(read, file.parent) for case in read.cases),
        )


def _fitting[N: (Case, Column)](
    option: str, patterns: Sequence[str], named: tuple[N, ...], file: Path
) -> tuple[N, ...]:
    if not patterns:
        return named
    for pattern in patterns:
        if not any(fnmatchcase(each.name, pattern) for each in named):
            there_are = ", ".join(each.name for each in named)
            raise SuiteError(f"{option} {pattern!r} fits none in {file}; there are: {there_are}")
    return tuple(each for each in named if any(fnmatchcase(each.name, pattern) for pattern in patterns))


def _columns(written: ColumnFile) -> list[Column]:
    """One for each combination of strategy and model."""
    columns = []
    for strategy, model in product(written.strategy or (None,), written.model or (None,)):
        several = [name for name, among in ((strategy, written.strategy), (model, written.model)) if len(among) > 1]
        parts = [written.name, *several] if written.name else [strategy, model]
        name = " · ".join(part for part in parts if part) or "default"
        columns.append(Column(name, strategy, model, written.params, written.completion))
    return columns

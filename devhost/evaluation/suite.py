"""The cases and columns of an evaluation. In: a file of cases. Out: a frozen `Suite`, whose names are unique."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Any

from devhost.errors import SuiteError
from devhost.evaluation.checks.expected import Expected
from devhost.evaluation.file import CaseFile, ColumnFile, SuiteFile, read_suite_file
from devhost.models.scripted.turn import Turn
from devhost.protocol.wire import JsonObject


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
class Case:
    name: str
    query: str | None
    scenario: str | None
    script: Path | dict[str, Any] | None
    turns: tuple[Turn, ...] | None
    files: tuple[Path, ...]
    params: JsonObject
    variables: JsonObject
    repeats: int
    rate: float
    expected: Expected


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
        return replace(self, cases=tuple(replace(case, repeats=repeats) for case in self.cases))

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
            cases=tuple(_case(each, read, file.parent) for each in read.cases),
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


def _case(written: CaseFile, suite: SuiteFile, folder: Path) -> Case:
    script = written.script
    return Case(
        name=written.name,
        query=written.query,
        scenario=written.scenario,
        script=folder / script if isinstance(script, Path) else script,
        turns=written.turns,
        files=tuple(folder / path for path in written.files),
        params=written.params,
        variables=written.variables,
        repeats=written.repeats or suite.repeats,
        rate=suite.rate if written.rate is None else written.rate,
        expected=written.expect,
    )

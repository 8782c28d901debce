"""A file of cases as pydantic checks it.

In: a YAML file. Out: a `SuiteFile`; SuiteError with a sentence for each mistake.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PositiveInt, ValidationError
from pydantic_core import ErrorDetails

from devhost.errors import SuiteError
from devhost.evaluation.checks.expected import (
    Bounds,
    CallsExpected,
    Checked,
    Expected,
    JudgeExpected,
    SourcesExpected,
    TextExpected,
    Texts,
)
from devhost.models.scripted.turn import SomeTurns, Words
from devhost.text.json_value import json_value
from devhost.text.yaml_file import load_yaml

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


class CaseFile(Checked):
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
    repeats: PositiveInt | None = None
    rate: Share | None = None
    """The share of the repeats that must fit."""
    expect: Expected


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
    cases: Annotated[tuple[CaseFile, ...], Field(min_length=1)]


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
    for finding in _findings(error):
        where = list(finding["loc"])
        if where and where[0] == "cases" and len(where) > 1:
            where[:2] = [_case(data, where[1])]
        # pydantic adds which branch of a union it tried.
        path = ", ".join(_part(part) for part in where if part not in {"Path", "dict[str,any]"})
        yield f"{path}: {_words(finding, where)}"


def _findings(error: ValidationError) -> list[ErrorDetails]:
    """A list whose entries have mistakes is also called too short: that is left out."""
    findings = error.errors()

    def holds_another(place: tuple[int | str, ...]) -> bool:
        return any(other["loc"][: len(place)] == place != other["loc"] for other in findings)

    return [finding for finding in findings if finding["type"] != "too_short" or not holds_another(finding["loc"])]


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
    model = CaseFile if owner.startswith("case ") else OWNERS.get(owner)
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

"""Reads and validates a file of cases."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, PositiveInt, ValidationError

from devhost.errors import HostError, SuiteError, naming
from devhost.evaluation.reset import Reset
from devhost.evaluation.rows import Rows
from devhost.expected import Expected
from devhost.limits import PositivePrice
from devhost.models.scripted.script import ScriptModel, SomeTurns, Texts, Words, one_sentence
from devhost.reach import within_reach
from devhost.script import Script, names_flow
from devhost.text import describe, json_value, load_yaml

type _JsonObject = Annotated[dict[str, Any], BeforeValidator(json_value)]
type Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
type _Name = Annotated[str, Field(min_length=1, max_length=120)]
"""The name of a case or a column, as tables show it and --case or --column selects it."""


class Column(ScriptModel):
    """One way to run every case."""

    name: _Name = "default"
    strategy: Words | None = None
    """The strategy, or `None` for the one that the case's script names, or else the plugin's first."""
    model: Words | None = None
    """The model, or `None` for the one from --model. A scripted model gets this name."""
    params: _JsonObject = Field(default_factory=dict)
    completion: _JsonObject = Field(default_factory=dict)
    """The parameters of the model."""


class SuiteCase(ScriptModel):
    """One case: a question or a script, and what is expected of its run."""

    name: _Name
    query: Words | None = None
    """The question; by default, the question of the case's script."""
    scenario: Words | None = None
    """The name of a script in the folder scenarios/ of the example."""
    script: Annotated[Path | dict[str, Any] | None, one_sentence("should be the path of a script, or a script")] = None
    """The path of a script, relative to the folder of the cases, or the script itself."""
    turns: SomeTurns | None = None
    """The turns of a script that has nothing else."""
    files: tuple[Path, ...] = ()
    params: _JsonObject = Field(default_factory=dict)
    variables: _JsonObject = Field(default_factory=dict)
    reset: Reset = ()
    """The steps before each run."""
    repeats: PositiveInt = 1
    rate: Share = 1.0
    """The share of the repeats that must pass. A case without `reset`, `repeats` or `rate` takes the file's value."""
    expect: Expected | None = None
    """The expectations; by default, those of the case's script."""
    reference: str = ""
    """A good answer, for scorers."""
    inputs: _JsonObject = Field(default_factory=dict)
    """The inputs of a flow's Start node, which override the inputs from the flow's script."""

    @property
    def written(self) -> Path | None:
        """The file of the case's script, or `None` if it has none."""
        if isinstance(self.script, Path):
            return self.script
        return None

    def within(self, suite: "SuiteFile", folder: Path) -> Self:
        """Returns the case with the defaults of its file and with paths that start at the file's folder."""
        defaults = {name: getattr(suite, name) for name in {"reset", "repeats", "rate"} - self.model_fields_set}
        script = self.script
        if isinstance(self.script, Path):
            script = folder / self.script
        files = tuple(within_reach(folder / path, folder) for path in self.files)
        return self.model_copy(update={**defaults, "script": script, "files": files})


def _case_of_a_file(case: object) -> object:
    """Turns a file name into a case: `wrong.case.yaml` is the case `wrong` with this script."""
    if isinstance(case, str):
        return {"name": Path(case).name.split(".")[0], "script": case}
    return case


class EvaluationLimits(ScriptModel):
    """The limits of an evaluation."""

    price: PositivePrice | None = None
    """The price limit of all runs and judges together. Once the limit is reached, no further run begins."""


class SuiteFile(ScriptModel):
    """A file of cases as a person writes it."""

    description: str = ""
    example: str | None = None
    tools: tuple[Path, ...] = ()
    """The folders of tool plugins, relative to the folder of the cases."""
    mcp: Texts = ()
    """MCP servers, written as for `--mcp`."""
    params: _JsonObject = Field(default_factory=dict)
    """Parameters for all cases, which override the parameters from scripts."""
    columns: Annotated[tuple[Column, ...], Field(min_length=1)] = (Column(),)
    reset: Reset = ()
    repeats: PositiveInt = 1
    rate: Share = 1.0
    threshold: Share = 1.0
    limits: EvaluationLimits = EvaluationLimits()
    cases: Annotated[tuple[Annotated[SuiteCase, BeforeValidator(_case_of_a_file)], ...], Field(min_length=1)]


class Suite(SuiteFile):
    """A file of cases that was read, with resolved paths and with the file's defaults in its cases."""

    file: Path
    flows: Mapping[str, Script]
    """The scripts of cases that play a flow, by the case's name. Either all cases play flows or none does."""

    @classmethod
    def read(cls, file: Path) -> Self:
        """Reads a file of cases. Raises SuiteError if the file is not valid."""
        written = _written(file)
        for noun, named in (("cases", written.cases), ("columns", written.columns)):
            for name, times in Counter(each.name for each in named).items():
                if times > 1:
                    raise SuiteError(f"{file}: {times} {noun} are named {name!r}: give each a name of its own")
        cases = tuple(case.within(written, file.parent) for case in written.cases)
        tools = tuple(file.parent / folder for folder in written.tools)
        known = {**dict(written), "tools": tools, "cases": cases}
        return cls.model_construct(**known, file=file, flows=_flows(file, cases))

    def only(self, cases: Sequence[str], columns: Sequence[str], repeats: int | None) -> Self:
        """Returns a copy with the cases and columns that match a pattern (* and ?), or with all if there is no pattern.

        `repeats` replaces the number of repeats of each case, unless it is `None`.
        """
        kept = _fitting("--case", cases, self.cases, self.file)
        if repeats is not None:
            kept = tuple(case.model_copy(update={"repeats": repeats}) for case in kept)
        fitting = _fitting("--column", columns, self.columns, self.file)
        return self.model_copy(update={"cases": kept, "columns": fitting})


def _written(file: Path) -> SuiteFile:
    data = load_yaml(file)
    if "cases" not in data and data.keys() & {"turns", "flow", "extends"}:
        data = {"cases": [file.name]}  # the file is a script, which counts as a single case
    places: list[str] = []
    """The place of each case in a file of rows; empty for other cases."""
    if isinstance(data.get("cases"), list):
        try:
            data["cases"] = list(_with_rows(data["cases"], file.parent, places))
        except HostError as error:
            raise SuiteError(f"{file}: {error}") from error
    try:
        return SuiteFile.model_validate(data)
    except ValidationError as error:
        raise SuiteError(f"{file}: {_with_names(_first(describe(error)), data, places)}") from error


def _with_rows(entries: Iterable[object], folder: Path, places: list[str]) -> Iterator[object]:
    for entry in entries:
        rows = Rows.of(entry, folder)
        if rows is None:
            places.append("")
            yield entry
            continue
        for place, case in rows.cases():
            places.append(place)
            yield case


MOST_SENTENCES = 10
"""The number of mistakes that are reported at once. Thousands of rows may have the same mistake."""


def _first(sentences: str) -> str:
    told = sentences.split("; cases[")
    left = len(told) - MOST_SENTENCES
    if left > 0:
        return f"{'; cases['.join(told[:MOST_SENTENCES])}; and {left:,} more"
    return sentences


def _with_names(sentences: str, data: dict[str, Any], places: Sequence[str]) -> str:
    """Returns the sentences with names or rows of cases in place of their numbers."""

    def case(found: re.Match[str]) -> str:
        number = int(found[1])
        written = data["cases"][number]
        name = written
        if isinstance(written, dict):
            name = written.get("name")
        said = f"case {number + 1}"
        if name:
            said = f"case {name!r}"
        if places[number]:
            said = places[number]
        if found[2]:
            return f"{said}, "
        return said

    return re.sub(r"cases\[(\d+)\](\.?)", case, sentences)


def _flows(file: Path, cases: Sequence[SuiteCase]) -> Mapping[str, Script]:
    try:
        files = dict.fromkeys(case.written for case in cases if case.written is not None)
        read = {script: Script.of_flow(script) for script in files if names_flow(script)}
        flows = {case.name: read[case.written] for case in cases if case.written in read}
    except HostError as error:
        raise SuiteError(f"{file}: {error}") from error
    if flows and len(flows) < len(cases):
        others = ", ".join(case.name for case in cases if case.name not in flows)
        raise SuiteError(
            f"{file}: {', '.join(flows)} play flows, and {others} a strategy: write them into files of their own"
        )
    return flows


def _fitting[N: (SuiteCase, Column)](
    option: str, patterns: Sequence[str], named: tuple[N, ...], file: Path
) -> tuple[N, ...]:
    for pattern in patterns:
        if not any(fnmatchcase(each.name, pattern) for each in named):
            there_are = naming(each.name for each in named)
            raise SuiteError(f"{option} {pattern!r} matches nothing in {file}; {there_are}")
    return tuple(each for each in named if any(fnmatchcase(each.name, pattern) for pattern in patterns or ("*",)))

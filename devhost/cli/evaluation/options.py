"""What is evaluated, with what, and where the results go: the options of `devhost eval` as two values.

In: the command line. Out: an `EvalOptions`, which reads the cases and their surroundings, and a `ReportOptions`.
"""

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import click

from devhost.cli.options.hosting_options import HostOptions
from devhost.cli.options.tool_options import DIRECTORY
from devhost.errors import ParameterError
from devhost.evaluation.plan import Ground, ModelSettings
from devhost.evaluation.suite import Suite
from devhost.models.scripted.script import Script
from devhost.plugin.declaration import PluginDeclaration
from devhost.plugin.nearest import nearest_strategy_plugin
from devhost.scenario.scenario import Example, examples_of
from devhost.scenario.tool_assignments import read_tool_setups

FILE = click.Path(dir_okay=False, path_type=Path)
LAST = "last"


def eval_options(command: Callable[..., int]) -> Callable[..., int]:
    """What is run, as one argument `eval_options` of the command."""

    @click.argument("file", metavar="CASES", type=FILE)
    @click.option(
        "--case", "cases", metavar="NAME", multiple=True, help="Only this case, or those of a pattern with *."
    )
    @click.option("--column", "columns", metavar="NAME", multiple=True, help="Only this column, or those of a pattern.")
    @click.option(
        "--param",
        "assignments",
        metavar="KEY=VALUE",
        multiple=True,
        help="A parameter of the strategy for every run, over the file's; repeatable.",
    )
    @click.option("--repeats", type=click.IntRange(min=1), help="How often each case is run, instead of the file's.")
    @click.option("--tools", metavar="DIR", type=DIRECTORY, multiple=True, help="A further Dify tool plugin.")
    @click.option(
        "--credential", "credentials", metavar="PROVIDER.KEY=VALUE", multiple=True, help="As for devhost run."
    )
    @click.option("--set", "settings", metavar="TOOL.PARAM=VALUE", multiple=True, help="As for devhost run.")
    @click.option("--plugin", metavar="DIR", type=DIRECTORY, help="The strategy plugin; by default the nearest one.")
    @click.option("--examples", metavar="DIR", type=DIRECTORY, help="The folder of the examples, as for devhost run.")
    @functools.wraps(command)
    def with_eval_options(  # noqa: PLR0913 - click gives one argument per option
        *,
        file: Path,
        cases: tuple[str, ...],
        columns: tuple[str, ...],
        assignments: tuple[str, ...],
        repeats: int | None,
        tools: tuple[Path, ...],
        credentials: tuple[str, ...],
        settings: tuple[str, ...],
        plugin: Path | None,
        examples: Path | None,
        **options: object,
    ) -> int:
        chosen = EvalOptions(file, cases, columns, assignments, repeats, tools, credentials, settings, plugin, examples)
        return command(**options, eval_options=chosen)

    return with_eval_options


@dataclass(frozen=True)
class EvalOptions:
    file: Path
    cases: tuple[str, ...]
    columns: tuple[str, ...]
    assignments: tuple[str, ...]
    repeats: int | None
    tools: tuple[Path, ...]
    credentials: tuple[str, ...] = field(repr=False)
    settings: tuple[str, ...] = field(repr=False)
    plugin: Path | None
    examples: Path | None

    def suite(self) -> Suite:
        return Suite.read(self.file).only(self.cases, self.columns).repeated(self.repeats)

    def ground(self, suite: Suite, host: HostOptions, models: ModelSettings) -> Ground:
        plugin = PluginDeclaration.read(self.plugin or nearest_strategy_plugin(Path.cwd()))
        if not plugin.strategies:
            raise ParameterError(f"{plugin.directory} has no agent strategy")
        examples = self.examples or examples_of(plugin.directory)
        example = None if suite.example is None else Example.find(examples, suite.example)
        panel = {} if example is None else Script.read(example.file).panel
        folders = [*([] if example is None else [example.directory]), *suite.tools, *self.tools]
        return Ground(
            plugin,
            tuple(read_tool_setups(folders, self.credentials, self.settings, os.environ, panel)),
            example,
            examples,
            assignments=self.assignments,
            limits=host.limits,
            models=models,
            strict=host.strict,
            panel=panel,
        )


def report_options(command: Callable[..., int]) -> Callable[..., int]:
    """Where the results go, as one argument `report_options` of the command."""

    @click.option(
        "--results", metavar="FILE", type=FILE, help="Where the results are kept; by default CASES.results.jsonl."
    )
    @click.option("--show", is_flag=True, help="Run nothing: report on the results that are kept.")
    @click.option("--fresh", is_flag=True, help="Begin again, also where an interrupted evaluation could go on.")
    @click.option(
        "--against",
        metavar="OLD",
        help=f"Compare with the evaluation in this file of results; {LAST} is the one before this one.",
    )
    @click.option(
        "--threshold",
        metavar="SHARE",
        type=click.FloatRange(0, 1),
        help="Exit with 1 if a column passes a smaller share of its cases, from 0 to 1; by default the file's, or 1.",
    )
    @click.option("--report", "page", metavar="FILE", type=FILE, help="Write a self-contained HTML page.")
    @click.option("--junit", metavar="FILE", type=FILE, help="Write JUnit's XML, for CI.")
    @click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout, and the rest on stderr.")
    @click.option("--no-color", is_flag=True, help="Print without colours.")
    @functools.wraps(command)
    def with_report_options(  # noqa: PLR0913 - click gives one argument per option
        *,
        results: Path | None,
        show: bool,
        fresh: bool,
        against: str | None,
        threshold: float | None,
        page: Path | None,
        junit: Path | None,
        as_json: bool,
        no_color: bool,
        **options: object,
    ) -> int:
        chosen = ReportOptions(results, show, fresh, against, threshold, page, junit, as_json, not no_color)
        return command(**options, report_options=chosen)

    return with_report_options


@dataclass(frozen=True)
class ReportOptions:
    results: Path | None
    show: bool
    """Whether nothing runs."""
    fresh: bool
    against: str | None
    threshold: float | None
    page: Path | None
    junit: Path | None
    as_json: bool
    color: bool

    def results_of(self, cases: Path) -> Path:
        return self.results or cases.with_suffix(".results.jsonl")

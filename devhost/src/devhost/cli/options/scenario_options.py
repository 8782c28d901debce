"""The options that say what is run: strategy, tools, script."""

import functools
import os
from collections.abc import Callable, MutableMapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import click

from devhost.errors import ParameterError, about
from devhost.host.host import find_strategy
from devhost.limits import HostLimits
from devhost.models.scripted.script import Script
from devhost.plugin.declaration import PluginDeclaration
from devhost.plugin.nearest import nearest_strategy_plugin
from devhost.scenario import (
    AttachedFiles,
    Example,
    Scenario,
    examples_of,
    parse_assignments,
    read_tool_setups,
    typed_settings,
)

DIRECTORY = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
CREDENTIAL = "A credential of a tool provider; else the variable PROVIDER_KEY, upper case, is read. Repeatable."
PLUGIN = "The strategy plugin; by default the nearest one in or above the current folder."

type Option = Callable[[Callable[..., int]], Callable[..., int]]


def tools_option(words: str) -> Option:
    return click.option("--tools", metavar="DIR", type=DIRECTORY, multiple=True, help=words)


def credential_option(words: str = CREDENTIAL) -> Option:
    return click.option("--credential", "credentials", metavar="PROVIDER.KEY=VALUE", multiple=True, help=words)


def set_option(words: str) -> Option:
    """A parameter of a tool as the node's panel has it."""
    return click.option("--set", "settings", metavar="TOOL.PARAM=VALUE", multiple=True, help=words)


def file_option(words: str) -> Option:
    return click.option("--file", "files", metavar="PATH", type=click.Path(path_type=Path), multiple=True, help=words)


def plugin_option(words: str = PLUGIN) -> Option:
    return click.option("--plugin", metavar="DIR", type=DIRECTORY, help=words)


# What is run: which strategy of which plugin, with which tools, by which script.


def scenario_options(command: Callable[..., int]) -> Callable[..., int]:
    """The options as one argument `scenario_options` of the command."""

    @click.option("--example", metavar="NAME", help="An example, a folder of examples/: its tools and its script.")
    @click.option("--scenario", metavar="NAME", help="Another script of the example, a file of its scenarios/.")
    @click.option(
        "--script",
        type=FILE,
        help="A script of a scripted model's turns and parameters, instead of the example's.",
    )
    @tools_option("A Dify tool plugin for the agent, in addition to the example's tools; repeatable.")
    @credential_option()
    @set_option("Fix a tool's parameter, as the node's panel does: the model no longer sets it. Repeatable.")
    @file_option(
        "A file that goes with the question, instead of the script's; in a chat with the first one. Repeatable."
    )
    @click.option("--strategy", metavar="NAME", help="The strategy; the plugin's first one by default.")
    @click.option(
        "--param", "parameters", metavar="KEY=VALUE", multiple=True, help="Set a parameter of the strategy; repeatable."
    )
    @click.option(
        "--variable",
        "variables",
        metavar="NODE.NAME=VALUE",
        multiple=True,
        help='A variable of the workflow, for {{#node.name#}} in a text and --param KEY=\'{"variable": "node.name"}\'. '
        "Repeatable.",
    )
    @plugin_option()
    @click.option(
        "--package",
        metavar="FILE",
        type=FILE,
        help="The strategy plugin as a .difypkg file, which is run from a temporary folder.",
    )
    @click.option(
        "--examples",
        metavar="DIR",
        type=DIRECTORY,
        help="The folder of the examples; by default the plugin's examples/, or else those of devhost.",
    )
    @functools.wraps(command)
    def with_scenario_options(  # noqa: PLR0913 - click gives one argument per option
        *,
        example: str | None,
        scenario: str | None,
        script: Path | None,
        tools: tuple[Path, ...],
        credentials: tuple[str, ...],
        settings: tuple[str, ...],
        files: tuple[Path, ...],
        strategy: str | None,
        parameters: tuple[str, ...],
        variables: tuple[str, ...],
        plugin: Path | None,
        package: Path | None,
        examples: Path | None,
        **options: object,
    ) -> int:
        with _folder(plugin, package) as directory:
            chosen = ScenarioOptions(
                example,
                scenario,
                script,
                tools,
                credentials,
                settings,
                files,
                strategy,
                parameters,
                variables,
                directory,
                examples,
            )
            return command(**options, scenario_options=chosen)

    return with_scenario_options


def _folder(plugin: Path | None, package: Path | None) -> AbstractContextManager[Path | None]:
    if plugin is not None and package is not None:
        raise ParameterError("--plugin and --package each name the strategy plugin: leave out one of them")
    if package is None:
        return nullcontext(plugin)
    from devhost.package import opened_package  # noqa: PLC0415 - with the rules of `devhost check`

    return opened_package(package)


@dataclass(frozen=True)
class ScenarioOptions:
    example: str | None
    scenario: str | None
    script: Path | None
    tools: tuple[Path, ...]
    credentials: tuple[str, ...] = field(repr=False)
    settings: tuple[str, ...] = field(repr=False)
    files: tuple[Path, ...]
    strategy: str | None
    parameters: tuple[str, ...]
    variables: tuple[str, ...]
    plugin: Path | None
    """None for the nearest one."""
    examples: Path | None
    """None for the plugin's own, or devhost's."""

    def read(self, *, raw: bool, limits: HostLimits, environment: MutableMapping[str, str] = os.environ) -> Scenario:
        """Credentials are removed from the environment."""
        given = parse_assignments(self.parameters)
        if "query" in given and not raw:
            raise ParameterError("--param query: a question is given with --query, or typed in a chat")
        if self.scenario is not None and (self.example is None or self.script is not None):
            raise ParameterError("--scenario names a script of an --example, and goes without --script")
        plugin, example = self._plugin(), self._example()
        file = self.script or (None if example is None else example.file)
        with about("script"):
            script = None if file is None else Script.read(file, self.strategy)
        declaration = PluginDeclaration.read(plugin)
        if not declaration.strategies:
            raise ParameterError(f"{plugin} has no agent strategy")
        default = None if script is None else script.strategy
        _, strategy = find_strategy(declaration, self.strategy or default or next(iter(declaration.strategies)))
        script = None if file is None else Script.read(file, strategy.identity.name)
        panel = {} if script is None else script.panel
        directories = self.tools if example is None else (example.directory, *self.tools)
        with about("tools"):
            tools = tuple(read_tool_setups(directories, self.credentials, self.settings, environment, panel))
        return Scenario(
            name="" if example is None else example.name,
            script=script,
            scripts=() if example is None else example.files,
            plugin=plugin,
            strategy=strategy,
            tools=tools,
            given=given if raw else typed_settings(strategy, self.parameters),
            given_variables=parse_assignments(self.variables, option="--variable"),
            attached=AttachedFiles.of(script, self.files, limits),
        )

    @property
    def sources(self) -> tuple[Path, ...]:
        """The files and folders that a person edits."""
        example = self._example()
        found = (self._plugin(), None if example is None else example.directory, *self.tools, self.script)
        return tuple(path for path in found if path is not None)

    def _plugin(self) -> Path:
        return nearest_strategy_plugin(Path.cwd()) if self.plugin is None else self.plugin

    def _example(self) -> Example | None:
        if self.example is None:
            return None
        return Example.find(self.examples or examples_of(self._plugin()), self.example, self.scenario)

"""What is forked and what is changed: the options of `devhost fork` about the run, as one value."""

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import click

from devhost.cli.options.model_options import ModelOptions
from devhost.cli.options.tool_options import (
    FILE,
    credential_option,
    file_option,
    plugin_option,
    set_option,
    tools_option,
)
from devhost.errors import ParameterError
from devhost.fork.fork import Changes, Fork, Origin, read_fork
from devhost.fork.model import ForkedModel
from devhost.limits import HostLimits
from devhost.models.scripted.script import Script
from devhost.plugin.nearest import nearest_strategy_plugin
from devhost.scenario.scenario import Example, examples_of
from devhost.scenario.tool_assignments import read_tool_setups
from devhost.tools.setup import ToolSetup


def fork_options(command: Callable[..., int]) -> Callable[..., int]:
    """The options as one argument `fork_options` of the command."""

    @click.option(
        "--at",
        metavar="ROUND",
        type=click.IntRange(min=0),
        help="How many rounds stay as recorded; 0 is none. Without it, the rounds are listed.",
    )
    @click.option(
        "--question", metavar="NUMBER", type=int, help="Which question of a conversation; by default its last one."
    )
    @click.option("--instruction", metavar="TEXT", help="Short for --param instruction=TEXT.")
    @click.option("--param", "parameters", metavar="KEY=VALUE", multiple=True, help="Change a parameter; repeatable.")
    @file_option("A file that goes with the question, instead of those of the trace. Repeatable.")
    @click.option("--script", type=FILE, help="A script of the turns that the model says after these rounds.")
    @click.option(
        "--live-tools",
        is_flag=True,
        help="Run the tools after these rounds. Without it they answer from the recording alone.",
    )
    @click.option("--example", metavar="NAME", help="With --live-tools: its tools; by default the trace's example.")
    @tools_option("With --live-tools: a tool plugin. Repeatable.")
    @credential_option("With --live-tools: a credential, as for run. Repeatable.")
    @set_option("With --live-tools: a parameter of the panel, as for run. Repeatable.")
    @plugin_option("The strategy plugin; by default the nearest one.")
    @functools.wraps(command)
    def with_fork_options(  # noqa: PLR0913 - click gives one argument per option
        *,
        at: int | None,
        question: int | None,
        instruction: str | None,
        parameters: tuple[str, ...],
        files: tuple[Path, ...],
        script: Path | None,
        live_tools: bool,
        example: str | None,
        tools: tuple[Path, ...],
        credentials: tuple[str, ...],
        settings: tuple[str, ...],
        plugin: Path | None,
        **options: object,
    ) -> int:
        live = LiveTools(live_tools, example, tools, credentials, settings)
        short = () if instruction is None else (f"instruction={instruction}",)
        chosen = ForkOptions(at, question, (*parameters, *short), files, script, live, plugin)
        return command(**options, fork_options=chosen)

    return with_fork_options


@dataclass(frozen=True)
class LiveTools:
    asked_for: bool
    example: str | None
    tools: tuple[Path, ...]
    credentials: tuple[str, ...] = field(repr=False)
    settings: tuple[str, ...] = field(repr=False)

    def read(self, origin: Origin, plugin: Path) -> tuple[ToolSetup, ...]:
        """Credentials are removed from the environment, which the plugins inherit."""
        named = {"--example": self.example, "--tools": self.tools, "--credential": self.credentials}
        if not self.asked_for:
            for option, value in {**named, "--set": self.settings}.items():
                if value:
                    raise ParameterError(f"{option} is for tools that run: give --live-tools too")
            return ()
        name = self.example or (None if self.tools else origin.trace.header.example or None)
        example = () if name is None else (Example.find(examples_of(plugin), name).directory,)
        if not (example or self.tools):
            raise ParameterError("--live-tools: the trace names no example, so say which tools: --tools DIR")
        return tuple(read_tool_setups((*example, *self.tools), self.credentials, self.settings, os.environ))


@dataclass(frozen=True)
class ForkOptions:
    at: int | None
    question: int | None
    """Counted from 1; None for the last one."""
    parameters: tuple[str, ...]
    files: tuple[Path, ...]
    script: Path | None
    live: LiveTools
    plugin: Path | None
    """None for the nearest one."""

    def read(self, origin: Origin, at: int, limits: HostLimits) -> Fork:
        plugin = nearest_strategy_plugin(Path.cwd()) if self.plugin is None else self.plugin
        changes = Changes(self.parameters, self.files, self.live.read(origin, plugin))
        return read_fork(origin, at, plugin, changes, limits)

    def model(self, fork: Fork, origin: Origin, options: ModelOptions) -> ForkedModel:
        """A script's model, or a real one, or else what was recorded to the end."""
        question = fork.past.run.question
        if self.script is not None:
            script = Script.read(self.script, origin.strategy)
            later = ModelOptions(options.api, options.name, options.completion, options.features, scripted=True)
            return ForkedModel(fork.past_turns, fork.card, origin.file, later.choose(script, script.query))
        chosen = options.choose(fork.scenario.script, question)
        if chosen.description.scripted:
            return ForkedModel(fork.turns, fork.card, origin.file, None)
        return ForkedModel(fork.past_turns, fork.card, origin.file, chosen)

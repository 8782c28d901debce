"""What `devhost fork` is given: a traced run, the round that it goes on from, and what is changed."""

from collections.abc import MutableMapping
from dataclasses import dataclass, replace
from pathlib import Path

import click

from devhost.errors import ParameterError, about
from devhost.fork import Fork, ForkedModel, Origin, find_in_flow, find_origin, forked_scenario, read_fork
from devhost.hosting import ModelOptions, credential_option
from devhost.limits import HostLimits
from devhost.models.scripted.script import Script
from devhost.options import FILE, PATH, argument, json_option, option
from devhost.plugin.declaration import nearest_strategy_plugin
from devhost.scenario import Example, examples_of, read_tool_setups
from devhost.tools.setup import ToolSetup
from devhost.trace.lines import read_trace


@dataclass(frozen=True)
class ForkOptions:
    trace: Path = argument("TRACE", FILE)
    at: int | None = option(
        "--at ROUND",
        "How many rounds stay as recorded; 0 is none. Without it, the rounds are listed.",
        type=click.IntRange(min=0),
    )
    question: int | None = option(
        "--question NUMBER", "Which question of a conversation; by default its last one.", type=int
    )
    node: str | None = option("--node ID", "Which agent of a flow; by default the last one that ran.")
    instruction: str | None = option("--instruction TEXT", "Short for --param instruction=TEXT.")
    parameters: tuple[str, ...] = option(
        "--param KEY=VALUE...", "Change a parameter, or the question (query=TEXT); repeatable."
    )
    files: tuple[Path, ...] = option(
        "--file PATH...", "A file that goes with the question, instead of those of the trace. Repeatable."
    )
    script: Path | None = option("--script FILE", "A script of the turns that the model says after these rounds.")
    live_tools: bool = option(
        "--live-tools", "Run the tools after these rounds. Without it they answer from the recording alone."
    )
    tools: tuple[Path, ...] = option("--tools DIR...", "With --live-tools: a tool plugin, beside the trace's example.")
    credentials: tuple[str, ...] = credential_option("With --live-tools: a credential, as for run. Repeatable.")
    settings: tuple[str, ...] = option(
        "--set TOOL.PARAM=VALUE...", "With --live-tools: a parameter of the panel, as for run. Repeatable.", hidden=True
    )
    plugin: Path | None = option("--plugin DIR", "The strategy plugin; by default the nearest one.")
    new_trace: Path | None = option("--trace FILE", "Write the trace of the new run, too.")
    page: Path | None = option("--report FILE", "Write an HTML page, too.", type=PATH)
    force: bool = option("--force", "With --report: overwrite a file that is not a page of devhost's.")
    as_json: bool = json_option()

    def origin(self) -> Origin:
        trace = read_trace(self.trace)
        if trace.header.command == "flow":
            return find_in_flow(trace, self.trace, self.question, self.node)
        if self.node is not None:
            raise ParameterError(f"--node is for the trace of a flow; {self.trace} has runs of a strategy")
        return find_origin(trace, self.trace, self.question)

    @property
    def folder(self) -> Path:
        """That of the strategy plugin."""
        return nearest_strategy_plugin() if self.plugin is None else self.plugin

    def read(self, origin: Origin, at: int, limits: HostLimits, tools: tuple[ToolSetup, ...] = ()) -> Fork:
        short = () if self.instruction is None else (f"instruction={self.instruction}",)
        params = (*self.parameters, *short)
        return read_fork(origin, at, forked_scenario(origin, self.folder, params, self.files, tools, limits))

    def read_tools(
        self, origin: Origin, environment: MutableMapping[str, str], *, validated: bool = True
    ) -> tuple[ToolSetup, ...]:
        """Those of --live-tools. Credentials are removed from the environment, which the plugins inherit."""
        if not self.live_tools:
            given = {"tools": self.tools, "credential": self.credentials, "set": self.settings}
            for option_name, value in given.items():
                if value:
                    raise ParameterError(f"--{option_name} is for tools that run: give --live-tools too")
            return ()
        with about("live"):
            folders = self.live_folders(origin)
            if not folders:
                raise ParameterError("--live-tools: the trace names no example, so say which tools: --tools DIR")
            return tuple(read_tool_setups(folders, self.credentials, self.settings, environment, validated=validated))

    def live_folders(self, origin: Origin) -> tuple[Path, ...]:
        """Of the tool plugins that --live-tools runs; HostError for an example that is not there."""
        header = origin.trace.header
        name = "" if header.command == "flow" else header.example
        example = [Example.find(examples_of(self.folder), name).directory] if name else []
        return (*example, *self.tools)

    def read_script(self, origin: Origin) -> Script | None:
        with about("script"):
            return None if self.script is None else Script.read(self.script, origin.strategy, asks=False)

    def model(self, fork: Fork, options: ModelOptions) -> ForkedModel:
        """A script's model, or a real one, or else what was recorded to the end."""
        origin, script = fork.origin, self.read_script(fork.origin)
        if script is not None:
            later = replace(options, scripted=True).choose(script, script.query)
            return ForkedModel(fork.past_turns, fork.card, origin.file, later)
        chosen = options.choose(fork.scenario.script, fork.question)
        if chosen.description.scripted:
            return ForkedModel(fork.turns, fork.card, origin.file, None)
        return ForkedModel(fork.past_turns, fork.card, origin.file, chosen)

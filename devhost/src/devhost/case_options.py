"""Reads the options of `devhost run`, `chat` and `flow` as a case. Mistakes are reported before anything starts."""

import os
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import click

from devhost.alone import AgentAlone
from devhost.case import Case, refuse_unknown_nodes
from devhost.errors import FlowFileError, ParameterError, about
from devhost.host.host import find_strategy
from devhost.hosting import KEY, ModelOptions, credential_option, mcp_option, models_behind_an_api, strategy_plugin
from devhost.limits import HostLimits
from devhost.options import PLUGIN, Declared, argument, option
from devhost.plugin.declaration import PluginDeclaration, Strategy, nearest_strategy_plugin
from devhost.reach import allow_files_option, allow_http_option
from devhost.scenario import Example, examples_of, parse_assignments, read_tool_setups
from devhost.script import UNWRITTEN, Kind, Script, names_flow
from devhost.tools import mcp
from devhost.tools.setup import Texts, ToolSetup

EXAMPLES = "The folder of the examples; by default the plugin's examples/, or else those of devhost."
ONLY: Mapping[Kind, Mapping[str, str]] = {
    "flow": {"file": "FILE", "node": "--node", "inputs": "--input"},
    "strategy": {
        "scenario": "--scenario",
        "settings": "--set",
        "strategy": "--strategy",
        "parameters": "--param",
        "variables": "--variable",
        "package": "--package",
    },
}
"""Options that are valid only for a case of this kind."""


def allow_code_option() -> Declared:
    return option(
        "--allow-code", "Let code nodes of flows, and scorers of cases, run on this machine, which is not a sandbox."
    )


@dataclass(frozen=True)
class CaseOptions:
    file: Path | None = argument("[FILE]")
    """The file of a flow; by default the flow that the script names. Without a flow, a strategy is played."""
    node: str | None = option(
        "--node NAME", "Play this node alone, by its id or title; --input gives its variables, as SOURCE.NAME=VALUE."
    )
    inputs: tuple[str, ...] = option("--input KEY=VALUE...", "A field of a flow's Start node; repeatable.")
    example: str | None = option(
        "--example NAME", "An example of examples/: its tools and, for a strategy, its script."
    )
    scenario: str | None = option("--scenario NAME", "Another script of the example's scenarios/.")
    script: Path | None = option("--script FILE", "A script: what the user says, and what the scripted models answer.")
    tools: tuple[Path, ...] = option("--tools DIR...", "A Dify tool plugin, beside the example's; repeatable.")
    servers: tuple[str, ...] = mcp_option()
    credentials: tuple[str, ...] = credential_option()
    settings: tuple[str, ...] = option(
        "--set TOOL.PARAM=VALUE...", "Fix a tool's parameter, as the node's panel does. Repeatable.", hidden=True
    )
    files: tuple[Path, ...] = option(
        "--file PATH...", "A file for the first question, instead of the script's. Repeatable."
    )
    strategy: str | None = option("--strategy NAME", "The strategy; the plugin's first one by default.")
    parameters: tuple[str, ...] = option("--param KEY=VALUE...", "Set a parameter of the strategy; repeatable.")
    variables: tuple[str, ...] = option(
        "--variable NODE.NAME=VALUE...", "A variable of the workflow around a strategy. Repeatable."
    )
    plugins: tuple[Path, ...] = option("--plugin DIR...", f"{PLUGIN} Can be repeated, for the agents of one flow.")
    package: Path | None = option("--package FILE", "The strategy plugin as a .difypkg.")
    examples: Path | None = option("--examples DIR", EXAMPLES)
    http: bool = allow_http_option()
    folders: tuple[Path, ...] = allow_files_option()
    code: bool = allow_code_option()

    @cached_property
    def kind(self) -> Kind:
        if self.file is not None or (self.script is not None and names_flow(self.script)):
            return "flow"
        return "strategy"

    def read(
        self,
        *,
        limits: HostLimits,
        models: ModelOptions | None = None,
        environment: MutableMapping[str, str] = os.environ,
        starts: bool = False,
    ) -> Case:
        """Read the case. Credentials are removed from the environment, and an error names the field that it is about.

        `models` is None if the script answers; the script is not checked then. `starts` also starts a model plugin.
        """
        other: Kind = "flow" if self.kind == "strategy" else "strategy"
        for name, written in ONLY[other].items():
            if getattr(self, name):
                raise ParameterError(f"{written} is for a {other}, and a {self.kind} is played")
        validated = models is None or not models.unvalidated
        if self.kind == "flow":
            case = self._flow(limits, environment, validated=validated)
        else:
            case = self._strategy(limits, environment, validated=validated)
        if models is None:
            return case
        return with_models(case, models, environment, starts=starts)

    def refuse_strategy(self) -> None:
        """Raise ParameterError if no flow is given."""
        if self.kind == "strategy":
            raise ParameterError("there is no flow: give FILE, or a --script that names it under the key flow")

    def refuse_workflow(self) -> None:
        """Refuse a chat with a single node or a workflow, before the user is asked for inputs.

        Raises ParameterError for a node, and FlowFileError for a workflow.
        """
        if self.node is not None:
            raise ParameterError("--node plays one node: leave out chat, because a node has no conversation")
        if self.kind == "flow":
            from devhost.flow.cases import flow_file  # noqa: PLC0415 - a strategy needs no flow

            file = flow_file(self.file, self.read_script())
            if not file.is_chatflow:
                said = "is a workflow and has no conversation: play it with devhost flow FILE"
                raise FlowFileError(f"{file.path} {said}")

    def read_here(self, limits: HostLimits, models: ModelOptions) -> Case:
        """Read the case.

        A flow is read in the engine's environment. Mistakes are reported before anything is installed.
        """
        if self.kind == "flow":
            from devhost.flow.turn import go_on_in_flow_environment, has_engine  # noqa: PLC0415 - as above

            if not has_engine():
                self.read(limits=limits, models=models, environment=dict(os.environ))
                go_on_in_flow_environment(click.get_current_context().obj)
        return self.read(limits=limits, models=models, starts=True)

    def _strategy(self, limits: HostLimits, environment: MutableMapping[str, str], *, validated: bool) -> Case:
        if self.scenario is not None and (self.example is None or self.script is not None):
            raise ParameterError("--scenario names a script of an --example, and goes without --script")
        with about("plugin"):
            declaration = strategy_plugin(self.folder, self.package)
        script = self.read_script(self.strategy)
        written_for = script.first_strategy
        known = self.strategy or (written_for if written_for in declaration.strategies else None)
        with about("strategy"):
            _, strategy = find_strategy(declaration, known or next(iter(declaration.strategies)))
        notice = ""
        if known is None and script is not UNWRITTEN:
            if written_for is None:
                script = self.read_script(strategy.identity.name)
            else:
                script, notice = _for_another_strategy(script, strategy, written_for)
        setups, servers = self.read_tools(script, environment, script.panel, validated=validated)
        variables = parse_assignments(self.variables, option="--variable")
        played = AgentAlone.of(declaration, strategy, script, {}, variables).with_settings(self.parameters)
        case = Case(
            script=script,
            played=played,
            name=self.example or script.example or "",
            plugins=(declaration,),
            setups=setups,
            servers=servers,
            limits=limits,
            files=self.files,
            remarks=tuple(_remarks(notice, script)),
        )
        refuse_unknown_nodes(case)
        return case

    def _flow(self, limits: HostLimits, environment: MutableMapping[str, str], *, validated: bool) -> Case:
        from devhost.flow.alone import NodeAlone  # noqa: PLC0415 - a strategy needs no flow
        from devhost.flow.cases import checked_flow, flow_file, read_inputs, refuse_misfit  # noqa: PLC0415 - as above
        from devhost.flow.outside import OutsideAccess  # noqa: PLC0415 - as above

        script = self.read_script()
        file = flow_file(self.file, script)
        if self.node is None:
            inputs = read_inputs(file, script, self.script, self.inputs, limits)
        else:
            refuse_misfit(file, script)
            alone = NodeAlone.of(file, self.node)
            inputs = alone.read(self.inputs, limits)
            if script is not UNWRITTEN:
                script = alone.script(script)
            file = alone.file
        folders: tuple[Path, ...] = ()
        if file.has_agents:
            folders = self.plugins or (nearest_strategy_plugin(),)
        setups, servers = self.read_tools(script, environment, {}, validated=validated)
        plugins = [PluginDeclaration.read(folder) for folder in folders]
        allowed = OutsideAccess(self.http, self.code)
        case = checked_flow(file, script, inputs, plugins, setups, servers, allowed, limits)
        return replace(case, files=self.files)

    # The parts of a case that strategies and flows share.

    def read_script(self, strategy: str | None = None) -> Script:
        """Return the script, or `UNWRITTEN` if none is given. By default, its turns are for its own first strategy."""
        with about("script"):
            if self.kind == "flow":
                if self.script is None:
                    return UNWRITTEN
                return Script.of_flow(self.script)
            file = self.script
            if file is None and self.example is not None:
                file = Example.find(self._examples, self.example, self.scenario).file
            if file is None:
                return UNWRITTEN
            return Script.read(file, strategy)

    def read_tools(
        self, script: Script, environment: MutableMapping[str, str], panel: Texts, *, validated: bool
    ) -> tuple[tuple[ToolSetup, ...], tuple[mcp.McpServer, ...]]:
        """Return the tools of the command line, or else of the script, and the MCP servers of both."""
        with about("tools"):
            given = self if self.tools or self.example else script
            folders = list(given.tools)
            if given.example is not None:
                folders.insert(0, Example.find(self._examples, given.example).directory)
            servers, credentials = mcp.read_servers((*script.mcp, *self.servers), self.credentials)
            setups = read_tool_setups(folders, credentials, self.settings, environment, panel, validated=validated)
        return tuple(setups), tuple(servers)

    @property
    def _examples(self) -> Path:
        beside = self.folder if self.kind == "strategy" else next(iter(self.plugins), None)
        return self.examples or examples_of(beside or _nearest_or_here())

    @property
    def sources(self) -> tuple[Path, ...]:
        """The files and folders that the user edits."""
        example = None if self.example is None else Example.find(self._examples, self.example).directory
        plugins = self.plugins
        if self.kind == "strategy":
            plugins = (self.folder,)
        found = (*plugins, example, *self.tools, self.script, self.file)
        return tuple(path for path in found if path is not None)

    @cached_property
    def folder(self) -> Path:
        """The folder of the strategy plugin. A package is unpacked to a folder that exists until the command ends."""
        if self.package is None:
            if self.plugins:
                return self.plugins[-1]
            return nearest_strategy_plugin()
        if self.plugins:
            raise ParameterError("--plugin and --package each name the strategy plugin: leave out one of them")
        from devhost.package import opened_package  # noqa: PLC0415 - imports the rules of `devhost check`

        return click.get_current_context().with_resource(opened_package(self.package))


def _nearest_or_here() -> Path:
    try:
        return nearest_strategy_plugin()
    except ParameterError:
        return Path.cwd()


def _remarks(notice: str, script: Script) -> Iterator[str]:
    if notice:
        yield notice
    if recorded := ", ".join(name for _, name in script.recorded.tool_names):
        yield f"tools that answer from a recording: {recorded}"


def _for_another_strategy(script: Script, strategy: Strategy, written_for: str) -> tuple[Script, str]:
    """Return the script for a strategy that lacks some of its parameters, and a remark for the user."""
    known = {parameter.name for parameter in strategy.parameters}
    left_out = ", ".join(name for name in script.params if name not in known)
    without = ""
    if left_out:
        without = f", without {left_out}"
    said = f"the script is written for {written_for}, which the plugin does not have: {strategy.identity.name} runs"
    params = {name: script.params[name] for name in script.params.keys() & known}
    return script.model_copy(update={"params": params}), f"{said}{without}"


# Who answers: the script, or models behind an API.


def with_models(
    case: Case, models: ModelOptions, environment: MutableMapping[str, str], *, starts: bool = False
) -> Case:
    """Return the case with its models.

    Raises ParameterError if nothing can answer, or if the script ignores an option.
    """
    behind_an_api = models_behind_an_api(models.or_of_script(case.script.model), environment)
    asking = case.played.asking
    if behind_an_api is None:
        if asking and not case.has_script:
            raise ParameterError(_no_model(case))
        refuse_misfit(case)
        case.refuse_unpriced()
        return case
    if starts:  # refusals are reported before anything starts
        for node in asking:
            behind_an_api(node)
    if case.played.kind == "strategy":
        case = replace(case, models=behind_an_api.opened)
    else:
        case = replace(case, models=behind_an_api, remarks=(*case.remarks, behind_an_api.notice))
    if starts or case.price_limit is not None:
        case.refuse_unpriced()
    return case


def _no_model(case: Case) -> str:
    if case.played.kind == "strategy":
        return f"no model is configured: give --example, --script or --model-plugin, or set {KEY}"
    nodes = ", ".join(map(str, case.played.asking))
    return f"no model is configured for {nodes}: give --script FILE with what it answers, or set {KEY}"


def refuse_misfit(case: Case) -> None:
    """Raise ParameterError if a scripted model has no turns for the strategy. A real model answers any question."""
    script = case.script
    if case.played.kind == "flow" or not case.has_script or script.fits:
        return
    both = ", ".join((*script.written_for, case.played.name))
    with about("script"):
        raise ParameterError(
            f"{script.place} has no turns for the strategy {case.played.name}, only for "
            f"{' and '.join(script.written_for)}: run one of those, or write `strategy: [{both}]` into the script if "
            "its turns fit both, or set OPENAI_API_KEY for a real model"
        )

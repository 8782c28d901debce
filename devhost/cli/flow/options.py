"""Which flow is played, with which tools, and what its user and its models say: as one value."""

import functools
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path

import click

from devhost.cli.flow.node_models import models_behind_an_api, refuse_without_models
from devhost.cli.flow.setup import FlowSetup
from devhost.cli.options.model_options import ModelOptions, model_options
from devhost.cli.options.tool_options import FILE, credential_option, plugin_option, tools_option
from devhost.errors import ParameterError
from devhost.flow.cases.case import refuse_misfit
from devhost.flow.checks.check import check_flow
from devhost.flow.checks.inputs import filled_inputs, typed_inputs, with_read_files
from devhost.flow.document import FlowFile
from devhost.flow.forms.answers import read_answers
from devhost.flow.knowledge import read_knowledge
from devhost.flow.outside.allowed import Allowed
from devhost.flow.script import FlowScript
from devhost.home import HOME
from devhost.limits import HostLimits
from devhost.plugin.declaration import PluginDeclaration
from devhost.plugin.nearest import nearest_strategy_plugin
from devhost.scenario.scenario import Example, examples_of
from devhost.scenario.tool_assignments import read_tool_setups


def flow_options(command: Callable[..., int]) -> Callable[..., int]:
    """The argument FILE and the options as one argument `flow_options` of the command."""

    @click.argument("file", required=False, type=FILE)
    @click.option(
        "--input", "inputs", metavar="KEY=VALUE", multiple=True, help="A field of the Start node; repeatable."
    )
    @click.option(
        "--answer",
        "answers",
        metavar="NODE=BUTTON",
        multiple=True,
        help="Press a button of a Human Input node's form; NODE.FIELD=VALUE fills in a field. Repeatable.",
    )
    @click.option(
        "--script",
        type=FILE,
        help="A flow's script: what the user says, and what the scripted models of the nodes answer.",
    )
    @tools_option("A Dify tool plugin for the flow's agents and Tool nodes; repeatable.")
    @click.option("--example", metavar="NAME", help="An example, a folder of examples/, whose tools the flow gets.")
    @credential_option()
    @plugin_option()
    @click.option(
        "--knowledge",
        metavar="NODE=FILE",
        multiple=True,
        help="A file with the segments that a Knowledge Retrieval node finds, by the node's id or title; repeatable.",
    )
    @click.option("--allow-http", is_flag=True, help="Let the flow's HTTP request nodes send requests.")
    @click.option(
        "--allow-code", is_flag=True, help="Let the flow's code nodes run on this machine, which is not a sandbox."
    )
    @model_options
    @functools.wraps(command)
    def with_flow_options(  # noqa: PLR0913 - click gives one argument per option
        *,
        file: Path | None,
        inputs: tuple[str, ...],
        answers: tuple[str, ...],
        script: Path | None,
        tools: tuple[Path, ...],
        example: str | None,
        credentials: tuple[str, ...],
        plugin: Path | None,
        knowledge: tuple[str, ...],
        allow_http: bool,
        allow_code: bool,
        model_options: ModelOptions,
        **options: object,
    ) -> int:
        allowed = Allowed(allow_http, allow_code)
        chosen = FlowOptions(
            file, inputs, answers, script, tools, example, credentials, plugin, knowledge, model_options, allowed
        )
        return command(**options, flow_options=chosen)

    return with_flow_options


@dataclass(frozen=True)
class FlowOptions:
    file: Path | None
    """None for that of the script."""
    inputs: tuple[str, ...]
    answers: tuple[str, ...]
    script: Path | None
    tools: tuple[Path, ...]
    example: str | None
    credentials: tuple[str, ...] = field(repr=False)
    plugin: Path | None
    """None for the nearest one."""
    knowledge: tuple[str, ...]
    models: ModelOptions
    allowed: Allowed

    def read(self, environment: MutableMapping[str, str], limits: HostLimits) -> "FlowSetup":
        """Credentials are removed from the environment, which the plugins inherit."""
        script, file = self._script(), self.read_file()
        beside = Path() if self.script is None else self.script.parent
        inputs = {
            **with_read_files(file, script.inputs, beside, limits),
            **with_read_files(file, typed_inputs(file, self.inputs), Path(), limits),
        }
        plugin = self._plugin(file)
        setups = read_tool_setups(self._tools(script, plugin), self.credentials, (), environment)
        declared = None if plugin is None else PluginDeclaration.read(plugin)
        notices = check_flow(file, inputs, declared, [setup.declaration for setup in setups], self.allowed)
        tools = tuple(setup.with_every_tool() for setup in setups)
        place, answers = str(self.script), read_answers(file, self.answers)
        refuse_misfit(file, script, place)
        behind_an_api = models_behind_an_api(self.models, environment)
        if behind_an_api is None and self.script is None:
            refuse_without_models(file)
        return FlowSetup(
            file,
            script,
            place,
            filled_inputs(file, inputs),
            answers,
            plugin,
            tools,
            notices if behind_an_api is None else (*notices, behind_an_api.notice),
            behind_an_api,
            read_knowledge(file, self.knowledge),
            self.allowed,
        )

    def read_file(self) -> FlowFile:
        """The flow, before anything else of it is checked."""
        file = self.file or self._script().flow
        if file is None:
            raise ParameterError("there is no flow: give FILE, or a --script that names it under the key flow")
        return FlowFile.read(file)

    def _script(self) -> FlowScript:
        return FlowScript() if self.script is None else FlowScript.read(self.script)

    def _tools(self, script: FlowScript, plugin: Path | None) -> tuple[Path, ...]:
        """Those of the command line, or else the script's."""
        given = self if self.tools or self.example else script
        if given.example is None:
            return given.tools
        return (Example.find(examples_of(plugin or HOME), given.example).directory, *given.tools)

    def _plugin(self, file: FlowFile) -> Path | None:
        """None for a flow without an Agent node."""
        if not any(node.type == "agent" for node in file.nodes.values()):
            return None
        return nearest_strategy_plugin(Path.cwd()) if self.plugin is None else self.plugin

"""Which flow is played, with which tools, and what its user and its models say: as one value."""

import functools
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import click

from devhost.cli.options.hosting_options import HostOptions
from devhost.cli.options.model_options import ModelOptions, model_options
from devhost.cli.options.node_models import models_behind_an_api
from devhost.errors import ParameterError
from devhost.files.run_folder import run_folder
from devhost.flow.cases.case import refuse_misfit
from devhost.flow.checks.check import check_flow
from devhost.flow.checks.inputs import filled_inputs, typed_inputs, with_read_files
from devhost.flow.document import FlowFile
from devhost.flow.forms.answers import Answers, Ask, GivenAnswers, read_answers, scripted_answers, together
from devhost.flow.knowledge import Knowledge, read_knowledge
from devhost.flow.outside.allowed import NOTHING, Allowed
from devhost.flow.script import FlowScript, ScriptedModels, TurnScript
from devhost.flow.surroundings import ModelOfNode, Surroundings
from devhost.host.host import Host
from devhost.host.tool_host import ToolHost, start_tools
from devhost.limits import HostLimits
from devhost.models.scripted.script import gist
from devhost.plugin.declaration import PluginDeclaration
from devhost.plugin.nearest import nearest_strategy_plugin
from devhost.process.stop import Stop
from devhost.process.watcher import Watcher
from devhost.protocol.wire import JsonObject
from devhost.scenario.scenario import HOME, examples_of
from devhost.scenario.tool_assignments import read_tool_setups
from devhost.tools.setup import ToolSetup

HIDDEN_TYPE = "secret"
"""The type of an environment variable that Dify hides."""
DIRECTORY = click.Path(file_okay=False, path_type=Path)


def flow_options(command: Callable[..., int]) -> Callable[..., int]:
    """The argument FILE and the options as one argument `flow_options` of the command."""

    @click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
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
        type=click.Path(dir_okay=False, path_type=Path),
        help="A flow's script: what the user says, and what the scripted models of the nodes answer.",
    )
    @click.option(
        "--tools",
        metavar="DIR",
        type=DIRECTORY,
        multiple=True,
        help="A Dify tool plugin for the flow's agents and Tool nodes; repeatable.",
    )
    @click.option("--example", metavar="NAME", help="An example, a folder of examples/, whose tools the flow gets.")
    @click.option(
        "--credential",
        "credentials",
        metavar="PROVIDER.KEY=VALUE",
        multiple=True,
        help="A credential of a tool provider; else the variable PROVIDER_KEY, upper case, is read. Repeatable.",
    )
    @click.option(
        "--plugin",
        metavar="DIR",
        type=DIRECTORY,
        help="The strategy plugin; by default the nearest one in or above the current folder.",
    )
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
        script = FlowScript() if self.script is None else FlowScript.read(self.script)
        file = FlowFile.read(self._flow(script))
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

    def _flow(self, script: FlowScript) -> Path:
        file = self.file or script.flow
        if file is None:
            raise ParameterError("there is no flow: give FILE, or a --script that names it under the key flow")
        return file

    def _tools(self, script: FlowScript, plugin: Path | None) -> tuple[Path, ...]:
        """Those of the command line, or else the script's."""
        given = self if self.tools or self.example else script
        return given.tools if given.example is None else (examples_of(plugin or HOME) / given.example, *given.tools)

    def _plugin(self, file: FlowFile) -> Path | None:
        """None for a flow without an Agent node."""
        if not any(node.type == "agent" for node in file.nodes.values()):
            return None
        return nearest_strategy_plugin(Path.cwd()) if self.plugin is None else self.plugin


@dataclass(frozen=True)
class FlowSetup:
    """What a flow is played with, read and checked."""

    file: FlowFile
    script: FlowScript
    place: str
    """Where the script is written, for people."""
    inputs: JsonObject
    """The fields of the Start node: of the command line, or else the script's, or else the form's defaults."""
    answers: GivenAnswers
    """Of the command line: they go before the script's."""
    plugin: Path | None
    """That of the flow's agents."""
    tools: tuple[ToolSetup, ...]
    notices: tuple[str, ...] = ()
    """What a person should know before the flow starts."""
    behind_an_api: ModelOfNode | None = None
    """None if the script answers."""
    knowledge: Knowledge = field(default_factory=dict)
    """Of the command line: it goes before the script's."""
    allowed: Allowed = NOTHING

    def turns(self, query: str | None, *, alone: bool) -> list[tuple[TurnScript, str]]:
        """What the script's user says, turn by turn: its question or another one, and what follows its question.

        What follows was written for the answers of a scripted model.
        """
        script, question = self.script, self.script.query if query is None else query
        if gist(question) != gist(script.query):
            return [(script.model_copy(update={"expect": None}), question)]
        goes_on = not alone and self.behind_an_api is None
        return [(script, question), *((turn, turn.query) for turn in script.then if goes_on)]

    def around(
        self, host: ToolHost, turn: TurnScript, *, ask: Ask | None = None, stop: Stop | None = None
    ) -> Surroundings:
        """What stands in the place of Dify's services in this turn; `ask` is for forms without a given answer."""
        models = self.behind_an_api or ScriptedModels(turn, self.script.model, self.place)
        knowledge = {**self.script.knowledge, **turn.knowledge, **self.knowledge}
        answers = together(scripted_answers(self.file, turn.answers, self.place), self.answers)
        return Surroundings(host, models, Answers(answers, ask, host.limits), knowledge, stop, self.allowed)

    @property
    def secrets(self) -> list[str]:
        """The credentials of the tools, and the flow's secret environment variables."""
        hidden = [str(each.value) for each in self.file.environment_variables if each.value_type == HIDDEN_TYPE]
        return [*(value for setup in self.tools for value in setup.secrets), *hidden]

    @contextmanager
    def host(self, options: HostOptions, watcher: Watcher, trace_file: Path | None = None) -> Iterator[ToolHost]:
        """A `Host` if the flow has Agent nodes. Files and what plugins store stay beside the trace, if there is one."""
        start: Callable[..., AbstractContextManager[ToolHost]] = partial(start_tools, self.tools)
        if self.plugin is not None:
            start = partial(Host.start, self.plugin, tools=self.tools, transport=options.transport)
        storage = options.storage_beside(trace_file)
        with (
            run_folder("flow", trace_file) as files,
            start(limits=options.limits, files=files, watcher=watcher, storage=storage) as host,
        ):
            yield host

"""What `devhost flow` is given: a flow, its tools, what its user says, and the models of its nodes."""

import os
import threading
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from devhost.errors import ParameterError
from devhost.files import local_files
from devhost.flow.alone import NodeAlone
from devhost.flow.cases import FlowCase, refuse_misfit
from devhost.flow.checks import check_flow, judged_by_engine, refuse
from devhost.flow.document import FlowFile, filled_inputs, typed_inputs, with_read_files
from devhost.flow.outside import Allowed
from devhost.flow.own_tools import answered_names, names_of_dify
from devhost.flow.script import FlowScript, TurnScript
from devhost.flow.tools import missing_tools
from devhost.flow.turn import go_on_in_flow_environment, has_engine
from devhost.host.host import Host, ToolHost, start_tools
from devhost.hosting import (
    BASE_URL,
    KEY,
    HostOptions,
    ModelOptions,
    credential_option,
    mcp_option,
    secrets_of,
    started,
    trace_written,
)
from devhost.limits import HostLimits
from devhost.models.backend import ModelDescription
from devhost.models.scripted.model import ScriptedModel
from devhost.models.scripted.script import gist
from devhost.options import PLUGIN, Declared, argument, option
from devhost.plugin.declaration import PluginDeclaration, nearest_strategy_plugin
from devhost.process.session import Watcher
from devhost.reach import allow_files_option, allow_http_option
from devhost.scenario import Example, examples_of, read_tool_setups
from devhost.tools import mcp
from devhost.tools.mcp import McpServer
from devhost.tools.setup import ToolSetup
from devhost.trace.flow import FlowLine, FlowNode

if TYPE_CHECKING:
    from devhost.model_plugin import PluginModel
    from devhost.models.openai_api.backend import OpenAIModel


@dataclass(frozen=True)
class FlowSetup:
    """What a flow is played with, read and checked."""

    case: FlowCase
    plugins: tuple[PluginDeclaration, ...]
    """The plugins of the flow's agents."""
    tools: tuple[ToolSetup, ...]
    notices: tuple[str, ...] = ()
    """What a person should know before the flow starts."""
    servers: tuple[McpServer, ...] = ()

    @property
    def scripted(self) -> ModelDescription | None:
        """The model whose answers are in the script; None if models are called, or none is asked."""
        if self.case.models is not None or not asking(self.case.file):
            return None
        return ScriptedModel((), card=self.case.script.model, place=self.case.place).description

    def turns(self, query: str | None, files: Sequence[Path] = (), *, alone: bool = False) -> list[TurnScript]:
        """What the script's user says: its question or another one, and what follows its question.

        `files`: go with the question, in place of the script's. What follows was written for the answers of a scripted
        model.
        """
        file = self.case.file
        script = self.case.script
        if query is not None and not file.is_chatflow:
            raise ParameterError(f"--query: {file.path} is a workflow and takes no question: give it --input KEY=VALUE")
        question = script.query if query is None else query
        if self.case.file.alone:
            question = str(self.case.inputs.get("sys.query", question))
            return [script.model_copy(update={"query": question, "files": tuple(files) or script.files})]
        if file.is_chatflow and not question:
            raise ParameterError("there is no question: give --query TEXT, or a script that has a query")
        is_asked = gist(question) == gist(script.query)
        changed = {"query": question, "files": tuple(files) or script.files}
        first = script.model_copy(update=changed if is_asked else {**changed, "expect": None})
        goes_on = is_asked and not alone and self.case.models is None
        turns = [first, *(script.then if goes_on else ())]
        for turn in turns:
            local_files(turn.files, self.case.limits)  # a mistake is told before anything starts
        return turns

    @property
    def secrets(self) -> list[str]:
        """The credentials of the tools, and the flow's secret environment variables."""
        of_tools = (value for setup in self.tools for value in setup.secrets)
        return [*of_tools, *mcp.secrets_of(self.servers), *self.case.file.secrets]

    @contextmanager
    def host(self, options: HostOptions, watcher: Watcher, trace_file: Path | None = None) -> Iterator[ToolHost]:
        """A `Host` if the flow has Agent nodes. Files and what plugins store stay beside the trace, if there is one."""
        begin: Callable[..., ToolHost] = partial(start_tools, self.tools)
        if self.plugins:
            first, *others = self.plugins
            begin = partial(Host.start, first, tools=self.tools, others=others, transport=options.transport)
        begin = partial(begin, servers=self.servers, watcher=watcher, storage=options.storage_beside(trace_file))
        with started(begin, "flow", options, trace_file) as host:
            if self.servers:  # what they have was not known when the flow was checked
                running = ((tool.provider, tool.name) for tool in host.tools)
                script = self.case.script
                there_are = [*running, *script.recorded.tool_names, *names_of_dify(self.case.file)]
                there_are += answered_names(self.case.file, script.tool_answers)
                refuse(self.case.file, missing_tools(self.case.file, there_are))
            yield host


# The models of a flow's nodes: those behind an API if a key or a base URL is set, else the script's.


def selected_name(node: FlowNode) -> str | None:
    """The name of the model that the node selects in the DSL."""
    match node.data:
        case {"model": {"name": str(name)}}:
            return name
        case {"agent_parameters": dict(parameters)}:
            for parameter in parameters.values():
                match parameter:
                    case {"value": {"type": "model-selector", "model": str(name)}} if name:
                        return name
    return None


class ModelsBehindAnApi:
    """One model for each node, named as the node names it or as --model says. Thread-safe."""

    def __init__(self, options: ModelOptions, environment: Mapping[str, str]) -> None:
        self._options = options
        self._environment = {name: environment.get(name, "") for name in (KEY, BASE_URL)}
        self._models: dict[str, OpenAIModel | PluginModel] = {}
        self._opening = threading.Lock()

    def __call__(self, node: FlowNode) -> "OpenAIModel | PluginModel":
        with self._opening:
            if node.id not in self._models:
                self._models[node.id] = self._options.open(self._environment, selected_name(node))
            return self._models[node.id]

    @property
    def notice(self) -> str:
        names = f"with the name {self._options.name}" if self._options.name else "with the names in the file"
        plugin = self._options.model_plugin
        where = "behind an API" if plugin is None else f"through {plugin.name}"
        return f"the models of the nodes are called {where}, {names}: that costs money; see --scripted"


def models_behind_an_api(options: ModelOptions, environment: Mapping[str, str]) -> ModelsBehindAnApi | None:
    """None if the script answers; ParameterError for an option that it would ignore."""
    if not options.asks_the_script(environment):
        return ModelsBehindAnApi(options, environment)
    options.refuse_for_a_script()
    return None


def asking(file: FlowFile) -> list[FlowNode]:
    """The nodes that ask a model."""
    types = {"agent", "llm", "question-classifier", "parameter-extractor"}
    return [node for node in file.nodes.values() if node.type in types]


def allow_code_option() -> Declared:
    return option(
        "--allow-code", "Let code nodes of flows, and scorers of cases, run on this machine, which is not a sandbox."
    )


# Which flow is played, with which tools, and what its user and its models say.


@dataclass(frozen=True)
class FlowOptions:
    file: Path | None = argument("[FILE]")
    """None for that of the script."""
    node: str | None = option(
        "--node NAME", "Play this node alone, by its id or title; --input gives its variables, as SOURCE.NAME=VALUE."
    )
    inputs: tuple[str, ...] = option("--input KEY=VALUE...", "A field of the Start node; repeatable.")
    script: Path | None = option(
        "--script FILE", "A flow's script: what the user says, and what the scripted models of the nodes answer."
    )
    tools: tuple[Path, ...] = option(
        "--tools DIR...", "A Dify tool plugin for the flow's agents and Tool nodes; repeatable."
    )
    servers: tuple[str, ...] = mcp_option(", whose tools the nodes get as from Dify")
    example: str | None = option("--example NAME", "An example, a folder of examples/, whose tools the flow gets.")
    credentials: tuple[str, ...] = credential_option()
    plugins: tuple[Path, ...] = option("--plugin DIR...", f"{PLUGIN} Can be repeated, for the agents of one flow.")
    http: bool = allow_http_option()
    folders: tuple[Path, ...] = allow_files_option()
    code: bool = allow_code_option()

    def read(
        self, environment: MutableMapping[str, str], limits: HostLimits, models: ModelOptions, *, starts: bool = False
    ) -> FlowSetup:
        """Credentials are removed from the environment, which the plugins inherit; `starts`: a model plugin, too."""
        script = self.read_script()
        file = self.read_file()
        place = str(self.script)
        if self.node is None:
            inputs = {
                **with_read_files(file, script.inputs, limits, self.script),
                **with_read_files(file, typed_inputs(file, self.inputs), limits),
            }
        else:
            refuse_misfit(file, script, place)
            alone = NodeAlone.of(file, self.node)
            inputs = alone.read(self.inputs, limits)
            script = alone.script(script)
            file = alone.file
        folders: tuple[Path, ...] = ()
        if file.has_agents:
            folders = self.plugins or (nearest_strategy_plugin(),)
        allowed = Allowed(self.http, self.code)
        servers, credentials = mcp.read_servers((*script.mcp, *self.servers), self.credentials)
        setups = read_tool_setups(
            self._tools(script, folders), credentials, (), environment, validated=not models.unvalidated
        )
        declared = tuple(PluginDeclaration.read(folder) for folder in folders)
        of_tools = [setup.declaration for setup in setups]
        recorded = script.recorded.tool_names
        names = [server.name for server in servers]
        notices = check_flow(
            file,
            inputs,
            declared,
            of_tools,
            allowed,
            recorded=recorded,
            answers=script.tool_answers,
            servers=names,
        )
        if has_engine():
            refuse(file, (each.sentence for each in judged_by_engine(file, ())))
        if self.node is None:
            refuse_misfit(file, script, place)
            inputs = filled_inputs(file, inputs)
        models = models.or_of_script(script.model)
        behind_an_api = models_behind_an_api(models, environment)
        if behind_an_api is not None:
            notices = (*notices, behind_an_api.notice)
            if models.model_plugin is not None and starts:
                models.start(models.model_plugin, environment)
                for node in asking(file):  # a refusal is told before the flow begins
                    behind_an_api(node)
        elif self.script is None and (nodes := ", ".join(map(str, asking(file)))):
            raise ParameterError(
                f"no model is configured for {nodes}: give --script FILE with what it answers, or set {KEY}"
            )
        case = FlowCase(file, script, place, inputs, limits, behind_an_api, allowed)
        case.refuse_unpriced(asking(file))
        return FlowSetup(case, declared, tuple(setup.with_every_tool() for setup in setups), notices, servers)

    def read_here(self, limits: HostLimits, models: ModelOptions) -> FlowSetup:
        """In the environment of the engine; mistakes are told before anything is installed."""
        if not has_engine():
            self.read(dict(os.environ), limits, models)
            go_on_in_flow_environment(click.get_current_context().obj)
        return self.read(os.environ, limits, models, starts=True)

    def read_file(self) -> FlowFile:
        """The flow, before anything else of it is checked."""
        file = self.file or self.read_script().flow
        if file is None:
            raise ParameterError("there is no flow: give FILE, or a --script that names it under the key flow")
        return FlowFile.read(file)

    def read_script(self) -> FlowScript:
        if self.script is None:
            return FlowScript()
        return FlowScript.read(self.script)

    def _tools(self, script: FlowScript, plugins: Sequence[Path]) -> tuple[Path, ...]:
        """Those of the command line, or else the script's."""
        given = self if self.tools or self.example else script
        if given.example is None:
            return given.tools
        beside = next(iter(plugins), Path.cwd())
        return (Example.find(examples_of(beside), given.example).directory, *given.tools)


def flow_traced(
    file: Path | None, setup: FlowSetup, begins: FlowLine, options: HostOptions
) -> AbstractContextManager[Watcher]:
    """A `TraceWriter`, told of the notices; without a file, a watcher that does nothing."""
    facts = {
        "command": "flow",
        "example": begins.name,
        "transport": options.transport,
        "query": begins.query,
        **({} if setup.scripted is None else {"model": setup.scripted.facts}),
    }
    return trace_written(file, secrets_of((), others=setup.secrets), facts, setup.notices)

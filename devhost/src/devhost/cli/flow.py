"""`devhost flow`: a whole chatflow or workflow on Dify's own engine, and the options of it."""

import functools
import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from devhost.cli.options.hosting_options import (
    BASE_URL,
    KEY,
    HostOptions,
    ModelOptions,
    model_options,
    runtime_options,
    trace_option,
)
from devhost.cli.options.scenario_options import FILE, credential_option, plugin_option, tools_option
from devhost.conversation import conversation_report, refuse_alone
from devhost.errors import FlowFileError, ParameterError
from devhost.files import local_files, run_folder
from devhost.flow.cases import CaseTurn, failures, refuse_misfit
from devhost.flow.chat import FlowChat, FlowChatView, FlowConversation
from devhost.flow.checks import check_flow, filled_inputs, typed_inputs, with_read_files
from devhost.flow.document import FlowFile, FlowNode
from devhost.flow.environment import go_on_in_flow_environment, has_engine, load_engine
from devhost.flow.forms import Answers, Ask, GivenAnswers, ask_at_terminal, read_answers, scripted_answers, together
from devhost.flow.outside import NOTHING, Allowed
from devhost.flow.script import FlowScript, Knowledge, ScriptedModels, TurnScript, read_knowledge
from devhost.flow.surroundings import FlowTurn, ModelOfNode, Surroundings
from devhost.flow.traces import FlowTrace
from devhost.flow.view import FlowFacts, FlowView, findings_of, flow_report, watched
from devhost.host.host import Host, ToolHost, start_tools
from devhost.limits import HostLimits
from devhost.models.scripted.script import gist
from devhost.plugin.declaration import PluginDeclaration
from devhost.plugin.nearest import nearest_strategy_plugin
from devhost.process.session import Stop, Watcher, Watchers
from devhost.process.transports.transport import TransportName
from devhost.protocol.wire import JsonObject
from devhost.scenario import Example, examples_of, read_tool_setups
from devhost.terminal.chat_view import read_questions
from devhost.terminal.run_view import ViewOptions, open_console, view_options
from devhost.terminal.signals import on_ctrl_c
from devhost.text import Secrets
from devhost.tools.setup import ToolSetup
from devhost.trace.lines import UNKNOWN_FACTS, TraceWriter
from devhost.words import examples

if TYPE_CHECKING:
    from devhost.models.openai_api.backend import OpenAIModel


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
        if query is not None and not self.file.is_chatflow:
            raise ParameterError(
                f"--query: {self.file.path} is a workflow and takes no question: give it --input KEY=VALUE"
            )
        if alone:
            refuse_alone(self.script.then)
        script, question = self.script, self.script.query if query is None else query
        if self.file.is_chatflow and not question:
            raise ParameterError("there is no question: give --query TEXT, or a script that has a query")
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
        return [*(value for setup in self.tools for value in setup.secrets), *self.file.secrets]

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


# The models of a flow's nodes: those behind an API if a key or a base URL is set, else the script's.

ASKING = frozenset({"agent", "llm", "question-classifier", "parameter-extractor"})
"""The types of nodes that ask a model."""


def selected_name(node: FlowNode) -> str | None:
    """The name of the model that the node selects in the DSL."""
    match node.data:
        case {"model": {"name": str(name)}}:
            return name
        case {"agent_parameters": dict(parameters)}:
            selectors = (parameter.get("value") for parameter in parameters.values() if isinstance(parameter, dict))
            return next(filter(None, map(_name_in, selectors)), None)
    return None


def _name_in(selector: object) -> str | None:
    match selector:
        case {"type": "model-selector", "model": str(name)}:
            return name
    return None


class ModelsBehindAnApi:
    """One model for each node, named as the node names it or as --model says. Thread-safe."""

    def __init__(self, options: ModelOptions, environment: Mapping[str, str]) -> None:
        self._options = options
        self._environment = {name: environment.get(name, "") for name in (KEY, BASE_URL)}
        self._models: dict[str, OpenAIModel] = {}
        self._opening = threading.Lock()

    def __call__(self, node: FlowNode, _question: str) -> "OpenAIModel":
        with self._opening:
            if node.id not in self._models:
                self._models[node.id] = self._options.open(self._environment, selected_name(node))
            return self._models[node.id]

    @property
    def notice(self) -> str:
        names = f"with the name {self._options.name}" if self._options.name else "with the names in the file"
        return f"the models of the nodes are called behind an API, {names}: that costs money; see --scripted"


def models_behind_an_api(options: ModelOptions, environment: Mapping[str, str]) -> ModelsBehindAnApi | None:
    """None if the script answers; ParameterError for an option that it would ignore."""
    if not options.asks_the_script(environment):
        return ModelsBehindAnApi(options, environment)
    options.refuse_for_a_script()
    return None


def refuse_without_models(file: FlowFile) -> None:
    """ParameterError for a flow whose nodes ask models, where neither a script nor an API answers."""
    asking = [str(node) for node in file.nodes.values() if node.type in ASKING]
    if asking:
        raise ParameterError(
            f"no model is configured for {', '.join(asking)}: give --script FILE with what it answers, or set {KEY}"
        )


# Which flow is played, with which tools, and what its user and its models say: as one value.


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
        return (Example.find(examples_of(plugin or Path.cwd()), given.example).directory, *given.tools)

    def _plugin(self, file: FlowFile) -> Path | None:
        """None for a flow without an Agent node."""
        if not any(node.type == "agent" for node in file.nodes.values()):
            return None
        return nearest_strategy_plugin(Path.cwd()) if self.plugin is None else self.plugin


@contextmanager
def flow_traced(
    file: Path | None, facts: FlowFacts, secrets: Iterable[str], transport: TransportName, notices: Iterable[str]
) -> Iterator[FlowTrace]:
    """Told of the notices; without a file it does nothing."""
    if file is None:
        yield FlowTrace()
        return
    header = {"command": "flow", "example": facts.name, "transport": transport, "query": facts.query}
    hidden = Secrets([*secrets, os.environ.get(KEY, "").strip()])
    with TraceWriter(file, hidden, {**UNKNOWN_FACTS, **header}) as writer:
        for notice in notices:
            writer.notice(notice)
        yield FlowTrace(writer)


# `devhost flow`: a whole chatflow or workflow, on Dify's own engine.

RUN = "run"
APPROVAL = "examples/workflows/approval.yml --example injection --script examples/workflows/cases/approval.yaml"


class FlowGroup(click.Group):
    """`devhost flow FILE` is short for `devhost flow run FILE`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = [RUN, *args]
        return super().parse_args(ctx, args)


@click.group(
    cls=FlowGroup,
    epilog=examples(
        "devhost flow --script examples/workflows/cases/approval.yaml",
        f"devhost flow chat {APPROVAL}",
    ),
)
def flow() -> None:
    """Play a chatflow or workflow on Dify's own engine, without Dify. Without a command's name, the flow is run."""


@flow.command(
    RUN,
    epilog=examples(
        "devhost flow --script examples/workflows/cases/approval.yaml",
        f"devhost flow {APPROVAL}",
    ),
)
@flow_options
@click.option("--query", metavar="TEXT", help="What the user of a chatflow says, instead of the script's question.")
@click.option(
    "--file",
    "paths",
    metavar="PATH",
    type=click.Path(path_type=Path),
    multiple=True,
    help="A file that the user sends with the question, instead of the script's; repeatable.",
)
@click.option("--alone", is_flag=True, help="Leave out what the script's user says after the question.")
@runtime_options
@trace_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout, and the rest on stderr.")
@view_options
@click.pass_obj
def run(  # noqa: PLR0913 - click gives one argument per option
    arguments: tuple[str, ...],
    *,
    flow_options: FlowOptions,
    query: str | None,
    paths: tuple[Path, ...],
    alone: bool,
    host_options: HostOptions,
    trace_file: Path | None,
    as_json: bool,
    view_options: ViewOptions,
) -> int:
    """Play a flow, and show what its nodes do.

    Of a chatflow, the script's whole conversation is played. A script that names its flow is a case and needs no FILE.
    The exit code is 1 if a turn is not as the script expects it; without expectations, a turn has to succeed.
    """
    setup = _read(flow_options, arguments, host_options.limits)
    hidden = Secrets(setup.secrets)
    turns = setup.turns(query, alone=alone)
    first, *later = [local_files(said.files, host_options.limits) for said, _ in turns]
    sent = [local_files(paths, host_options.limits) or first, *later]
    console = open_console(stderr=as_json, color=view_options.color)
    view, ask = FlowView(console, view_options), ask_at_terminal(console, hidden)
    turn = FlowTurn(turns[0][1], setup.inputs, sent[0])
    facts = FlowFacts.of(setup.file, turn)
    ended: list[CaseTurn] = []
    with flow_traced(trace_file, facts, setup.secrets, host_options.transport, setup.notices) as trace:
        conversation = FlowConversation(setup.file, trace.written(load_engine()), setup.inputs)
        view.open(setup.file, turn, setup.notices)
        try:
            hosting = setup.host(host_options, Watchers(trace.watcher, view.screen), trace_file)
            with on_ctrl_c(view.show_how_far), hosting as host, on_ctrl_c(view.show_how_far):
                view.begin_answer()
                for (said, question), files in zip(turns, sent, strict=True):
                    if ended:
                        _close(view, ended[-1])
                        view.go_on(question)
                    around = setup.around(host, said, ask=ask)
                    played = watched(conversation.play(question, around, files), view.show, hidden)
                    ended.append(CaseTurn(said, played, failures(setup.file, said, played, len(ended) + 1)))
        finally:
            view.abandon()
    if as_json:
        reports = [_report(each) for each in ended]
        report = {**conversation_report(reports), "notices": list(setup.notices)}
        click.echo(json.dumps(report, ensure_ascii=False, indent=2))
    _close(view, ended[-1])
    if len(judged := [each for each in ended if each.has_expectations]) > 1:
        view.sum_up(turns=len(judged), failed=sum(bool(each.failures) for each in judged))
    broken = host_options.strict and any(findings_of(each.played.nodes) for each in ended)
    return int(broken or any(each.failures for each in ended))


@flow.command(
    "chat",
    epilog=examples(
        f"devhost flow chat {APPROVAL}",
    ),
)
@flow_options
@runtime_options
@trace_option
@view_options
@click.pass_obj
def chat(
    arguments: tuple[str, ...],
    *,
    flow_options: FlowOptions,
    host_options: HostOptions,
    trace_file: Path | None,
    view_options: ViewOptions,
) -> int:
    """Keep a conversation with a chatflow, one message a line."""
    file = flow_options.read_file()
    if not file.is_chatflow:  # said before its inputs are asked for
        raise FlowFileError(f"{file.path} is a workflow and has no conversation: play it with devhost flow FILE")
    setup = _read(flow_options, arguments, host_options.limits)
    questions = read_questions()
    console = open_console(stderr=False, color=view_options.color)
    hidden, strict = Secrets(setup.secrets), host_options.strict
    view, ask = FlowChatView(console, view_options), ask_at_terminal(console, hidden)

    def around(question: str, number: int, asked: int, /, host: ToolHost, stop: Stop) -> Surroundings:
        return setup.around(host, setup.script.turn_for(question, number, asked), ask=ask, stop=stop)

    facts = FlowFacts.of(setup.file, FlowTurn(inputs=setup.inputs))
    with flow_traced(trace_file, facts, setup.secrets, host_options.transport, setup.notices) as trace:
        view.begin(setup.file, setup.notices)
        begin = partial(FlowConversation, setup.file, trace.written(load_engine()), setup.inputs)
        conversation = FlowChat(begin, around, view, hidden=hidden, limits=host_options.limits, strict=strict)
        hosting = partial(setup.host, host_options, Watchers(trace.watcher, view.screen), trace_file)
        with on_ctrl_c(view.screen.say_what_starts):
            conversation.converse(questions, hosting)
    return int(host_options.strict and conversation.broke_rules)


def _close(view: FlowView, turn: CaseTurn) -> None:
    played = turn.played
    view.close(played.ended, played.seconds, findings_of(played.nodes))
    if turn.has_expectations:
        view.judge(turn.failures)


def _report(turn: CaseTurn) -> JsonObject:
    played = turn.played
    report = flow_report(played.nodes, played.ended, played.seconds)
    return {**report, "failed_expectations": list(turn.failures)} if turn.has_expectations else report


def _read(options: FlowOptions, arguments: tuple[str, ...], limits: HostLimits) -> FlowSetup:
    """In the environment of the engine; mistakes are told before anything is installed."""
    if not has_engine():
        options.read(dict(os.environ), limits)
        go_on_in_flow_environment(arguments)
    return options.read(os.environ, limits)

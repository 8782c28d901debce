"""`devhost flow`: a whole chatflow or workflow, on Dify's own engine."""

import json
import os
from functools import partial
from pathlib import Path

import click

from devhost.cli.flow.options import FlowOptions, flow_options
from devhost.cli.flow.setup import FlowSetup
from devhost.cli.options.hosting_options import HostOptions, runtime_options
from devhost.cli.options.trace_options import flow_traced, trace_option
from devhost.conversation.script import conversation_report
from devhost.errors import FlowFileError
from devhost.files.local_file import local_files
from devhost.flow.cases.play import CaseTurn, failures
from devhost.flow.chat.chat import FlowChat
from devhost.flow.chat.conversation import FlowConversation
from devhost.flow.chat.view import FlowChatView
from devhost.flow.engine_loading import has_engine, load_engine
from devhost.flow.environment import go_on_in_flow_environment
from devhost.flow.forms.asking import ask_at_terminal
from devhost.flow.surroundings import FlowTurn, Surroundings
from devhost.flow.view.facts import FlowFacts
from devhost.flow.view.report import findings_of, flow_report
from devhost.flow.view.view import FlowView
from devhost.flow.view.watching import watched
from devhost.host.tool_host import ToolHost
from devhost.limits import HostLimits
from devhost.process.stop import Stop
from devhost.process.watcher import Watchers
from devhost.protocol.wire import JsonObject
from devhost.terminal.questions import read_questions
from devhost.terminal.run_view import open_console
from devhost.terminal.signals.interrupt import on_ctrl_c
from devhost.terminal.view_options import ViewOptions, view_options
from devhost.text.command_help import examples
from devhost.text.secrets import Secrets

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

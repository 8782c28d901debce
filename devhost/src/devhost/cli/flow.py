"""`devhost flow`: a whole chatflow or workflow, on Dify's own engine."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click

from devhost.conversation import conversation_report
from devhost.errors import FlowFileError, ParameterError
from devhost.files import local_files
from devhost.flow.cases import CaseTurn, FlowConversation, case_turns
from devhost.flow.chat import FlowChat, FlowChatView
from devhost.flow.forms import AskAtTerminal, ask_at_terminal, ask_by_line
from devhost.flow.traces import FlowTrace, facts_of
from devhost.flow.turn import FlowTurn, load_engine
from devhost.flowing import FlowOptions, flow_traced
from devhost.hosting import HostOptions, ModelOptions
from devhost.options import command, json_option, option, print_json, trace_option
from devhost.protocol.wire import JsonObject
from devhost.terminal.chat_view import TalkOptions, read_questions
from devhost.terminal.screen import Interrupt, ViewOptions, open_console
from devhost.terminal.tables import flow_facts
from devhost.terminal.turn_view import TurnView
from devhost.text import Secrets
from devhost.trace.played import flow_report
from devhost.words import examples


class FlowGroup(click.Group):
    """`devhost flow FILE` is short for `devhost flow run FILE`; the command's name may stand after options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            behind = (at for at, name in enumerate(args) if name in self.commands and args[at - 1][:1] != "-")
            # What stands after an option may be its value; after a flow's file comes no command.
            at = next(behind, None) if args[0].startswith("-") else None
            args = ["run", *args] if at is None else [args[at], *args[:at], *args[at + 1 :]]
        return super().parse_args(ctx, args)


@click.group(
    cls=FlowGroup,
    epilog=examples(
        "devhost flow --script examples/workflows/cases/approval.yaml",
        "devhost flow chat --script examples/workflows/cases/approval.yaml",
    ),
)
def flow() -> None:
    """Play a chatflow or workflow on Dify's own engine, without Dify. Without a command's name, the flow is run."""


@dataclass(frozen=True)
class PlayOptions:
    query: str | None = option("--query TEXT", "What the user of a chatflow says, instead of the script's question.")
    files: tuple[Path, ...] = option(
        "--file PATH...", "A file that the user sends with the question, instead of the script's; repeatable."
    )
    alone: bool = option("--alone", "Leave out what the script's user says after the question.")
    trace: Path | None = trace_option()
    as_json: bool = json_option()
    json_lines: bool = option(
        "--json-lines", "Read answers to forms from standard input, each a line of JSON; for other programs."
    )


@command(FlowOptions, PlayOptions, ModelOptions, HostOptions, ViewOptions, of=flow)
def run(
    asked: FlowOptions, options: PlayOptions, models: ModelOptions, hosting: HostOptions, shown: ViewOptions
) -> int:
    """Play a flow, and show what its nodes do.

    Of a chatflow, the script's whole conversation is played. A script that names its flow is a case and needs no FILE.
    The exit code is 1 if a turn is not as the script expects it; without expectations, a turn has to succeed.

    For example:
      devhost flow --script examples/workflows/cases/approval.yaml
      devhost flow examples/workflows/approval.yml --example injection --script examples/workflows/cases/approval.yaml
    """
    setup = asked.read_here(hosting.limits, models)
    case = setup.case
    hidden = Secrets(setup.secrets)
    turns = setup.turns(options.query, options.files, alone=options.alone)
    console = open_console(stderr=options.as_json, color=shown.color)
    view = TurnView(console, shown)
    ask = ask_by_line if options.json_lines else ask_at_terminal(console, hidden)
    files = local_files(turns[0].files, hosting.limits)
    begins = facts_of(case.file, FlowTurn(turns[0].query, case.inputs, files))
    ended: list[CaseTurn] = []
    with flow_traced(options.trace, setup, begins, hosting) as watcher:
        trace = FlowTrace(watcher)
        conversation = FlowConversation(case, trace.written(load_engine()), view.show, hidden, ask)
        model = setup.scripted.notice if setup.scripted else ""
        given: list[JsonObject] = [{"filename": name} for name in begins.files]
        view.open(flow_facts(begins, setup.notices, model), begins.query, given)
        watchers = models.plugins.tell(watcher, view.screen)
        with view.answering(setup.host(hosting, watchers, options.trace)) as host:
            for each in case_turns(conversation, host, turns):
                ended.append(each)
                if each.has_expectations:
                    trace.judged(each.failures)
                if len(ended) < len(turns) and not each.stays_open:
                    _close(view, each)
                    following = turns[len(ended)]
                    view.go_on(following.query, [{"filename": Path(file).name} for file in following.files])
    if options.as_json:
        print_json({**conversation_report([_report(each) for each in ended]), "notices": list(setup.notices)})
    _close(view, ended[-1])
    if len(judged := [each for each in ended if each.has_expectations]) > 1:
        view.sum_up(turns=len(judged), failed=sum(bool(each.failures) for each in judged))
    if isinstance(ask, AskAtTerminal) and ask.is_interrupted:
        raise click.Abort
    broken = hosting.strict and any(each.played.findings for each in ended)
    return int(broken or any(each.failures for each in ended))


@command(FlowOptions, TalkOptions, ModelOptions, HostOptions, ViewOptions, of=flow)
def chat(
    asked: FlowOptions, options: TalkOptions, models: ModelOptions, hosting: HostOptions, shown: ViewOptions
) -> int:
    """Keep a conversation with a chatflow, one message a line.

    For example:
      devhost flow chat --script examples/workflows/cases/approval.yaml
    """
    if asked.node is not None:
        raise ParameterError("--node plays one node: leave out chat, because a node has no conversation")
    file = asked.read_file()
    if not file.is_chatflow:  # said before its inputs are asked for
        raise FlowFileError(f"{file.path} is a workflow and has no conversation: play it with devhost flow FILE")
    setup = asked.read_here(hosting.limits, models)
    questions = read_questions(json_lines=options.json_lines)
    console = open_console(stderr=False, color=shown.color)
    hidden = Secrets(setup.secrets)
    view = FlowChatView(console, shown)
    ask = ask_by_line if options.json_lines else ask_at_terminal(console, hidden)
    facts = facts_of(file, FlowTurn())
    with flow_traced(options.trace, setup, facts, hosting) as watcher:
        engine = FlowTrace(watcher).written(load_engine())
        conversation = FlowConversation(setup.case, engine, view.show, hidden, ask)
        interrupt = Interrupt(only_turns=options.json_lines)
        talk = FlowChat(conversation=conversation, view=view, strict=hosting.strict, interrupt=interrupt)
        scripted = [setup.scripted.notice] if setup.scripted else []
        view.open_chat(facts, [*scripted, *setup.notices])
        watchers = models.plugins.tell(watcher, view.screen)
        talk.converse(questions, partial(setup.host, hosting, watchers, options.trace))
    return int(hosting.strict and talk.broke_rules)


def _close(view: TurnView, turn: CaseTurn) -> None:
    view.close(turn.played)
    if turn.has_expectations:
        view.judge(turn.failures)


def _report(turn: CaseTurn) -> JsonObject:
    report = flow_report(turn.played)
    if turn.has_expectations:
        return {**report, "failed_expectations": list(turn.failures)}
    return report

"""The command `run`: a question to a strategy, and what its script's user says after it."""

import json
import uuid
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from devhost.cli.options.hosting_options import HostOptions, host_options, started_host
from devhost.cli.options.model_options import ModelOptions, model_options
from devhost.cli.options.otlp_options import OtlpOptions, otlp_options
from devhost.cli.options.scenario_options import ScenarioOptions, scenario_options
from devhost.cli.options.trace_options import trace_option, traced
from devhost.cli.watching import WATCH, run_again_on_changes
from devhost.conversation.conversation import Conversation
from devhost.conversation.script import Ended, conversation_report, play, refuse_alone
from devhost.errors import HostError
from devhost.node.outputs.report import never_begun, report
from devhost.process.watcher import Watchers
from devhost.protocol.wire import JsonObject
from devhost.scenario.fitting import refuse_misfit
from devhost.terminal.run_view import RunView, open_console
from devhost.terminal.signals.interrupt import on_ctrl_c
from devhost.terminal.view_options import ViewOptions, view_options
from devhost.text.command_help import examples

ENDED_WELL, RUN_FAILED = 0, 1


@click.command(
    epilog=examples(
        "devhost run --example helpdesk",
        "devhost run --example helpdesk --scenario two-topics --trace run.jsonl",
    )
)
@scenario_options
@click.option("--query", metavar="TEXT", help="Ask this instead of the script's own question.")
@click.option("--alone", is_flag=True, help="Leave out what the script's user says after the question.")
@click.option(WATCH, is_flag=True, help="Run again whenever a file of the plugin, its tools or the script changes.")
@model_options
@host_options
@trace_option
@otlp_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout, and the rest on stderr.")
@view_options
@click.pass_obj
def run(  # noqa: PLR0913 - click gives one argument per option
    arguments: tuple[str, ...],
    *,
    scenario_options: ScenarioOptions,
    query: str | None,
    alone: bool,
    watch: bool,
    model_options: ModelOptions,
    host_options: HostOptions,
    trace_file: Path | None,
    otlp_options: OtlpOptions,
    as_json: bool,
    view_options: ViewOptions,
) -> int:
    """Run a strategy and show it."""
    if watch:
        return run_again_on_changes(arguments, scenario_options.sources)
    scenario = scenario_options.read(raw=host_options.raw, limits=host_options.limits)
    if alone:
        refuse_alone(() if scenario.script is None else scenario.script.then)
    question = scenario.question(query)
    scenario.check(question, raw=host_options.raw)
    guesses = scenario.guesses(question, raw=host_options.raw)
    notices = (*scenario.notices, *guesses)
    strategy = scenario.strategy.identity.name
    choose = partial(model_options.choose, scenario.script)
    model = choose(question).description
    if model.scripted:
        refuse_misfit(scenario)
    follow_ups = scenario.follow_ups(question) if model.scripted and not alone else ()
    conversation = Conversation(
        scenario,
        conversation_id=str(uuid.uuid4()),
        raw=host_options.raw,
        strict=host_options.strict,
    )
    turns = play(conversation, question, follow_ups, choose)

    view = RunView(open_console(stderr=as_json, color=view_options.color), view_options)
    ended: list[Ended] = []
    with (
        otlp_options.sending(trace_file) as kept,
        traced(
            kept, scenario, model, host_options.transport, command="run", query=question, guesses=guesses
        ) as watcher,
    ):
        storage = host_options.storage_beside(trace_file)
        facts = (scenario.name, scenario.description, strategy, model, question)
        view.open(*facts, notices=notices, files=conversation.files_of(question))
        try:
            watchers = Watchers(watcher, view.screen)
            hosting = started_host(scenario, host_options, watchers, storage, trace_file)
            with on_ctrl_c(view.show_how_far), hosting as host, on_ctrl_c(view.show_how_far):
                view.begin_answer()
                for turn in turns(host, view.show):
                    watcher.remark(turn.remark)
                    ended.append(turn)
                    if turn.next_question is not None:
                        view.close(turn.run, turn.remark)
                        view.go_on(turn.next_question, conversation.files_of(turn.next_question))
        except HostError as error:
            if as_json:
                lost = report(never_begun(strategy, error), model)
                _print_json(conversation_report([*(turn.report for turn in ended), lost]), notices)
            raise
        finally:
            view.abandon()
        last = ended[-1]
        if as_json:
            _print_json(conversation_report([turn.report for turn in ended]), notices)
        view.close(last.run, last.remark)
    broke_rules = host_options.strict and any(turn.run.findings for turn in ended)
    return RUN_FAILED if last.run.error or broke_rules else ENDED_WELL


def _print_json(value: JsonObject, notices: Sequence[str]) -> None:
    click.echo(json.dumps({**value, "notices": list(notices)}, ensure_ascii=False, indent=2))

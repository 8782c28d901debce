"""`devhost chat`: a conversation with a strategy, one question a line."""

from functools import partial
from pathlib import Path

import click

from devhost.chat.chat import Chat
from devhost.cli.options.hosting_options import HostOptions, host_options, started_host
from devhost.cli.options.model_options import ModelOptions, model_options
from devhost.cli.options.otlp_options import OtlpOptions, otlp_options
from devhost.cli.options.scenario_options import ScenarioOptions, scenario_options
from devhost.cli.options.trace_options import trace_option, traced
from devhost.process.watcher import Watchers
from devhost.scenario.fitting import refuse_misfit
from devhost.scenario.scenario import Scenario
from devhost.terminal.chat_view import ChatView
from devhost.terminal.questions import read_json_lines, read_questions
from devhost.terminal.run_view import open_console
from devhost.terminal.signals.interrupt import Interrupt, on_ctrl_c
from devhost.terminal.view_options import ViewOptions, view_options
from devhost.text.command_help import examples

ANY_QUESTION = "?"
"""In place of a question that is not typed yet, while the other parameters are checked."""


@click.command(
    epilog=examples(
        "devhost chat --example helpdesk",
        "devhost chat --example injection --scenario mail --log",
    )
)
@scenario_options
@model_options
@host_options
@trace_option
@otlp_options
@click.option(
    "--json-lines",
    is_flag=True,
    help="Read each question as a line of JSON, a text, so that it can have several lines; for other programs. "
    "Ctrl-C then ends a turn, and has no effect between two.",
)
@click.option("--log", "show_log", is_flag=True, help="Show the log tree after each answer.")
@view_options
def chat(  # noqa: PLR0913 - click gives one argument per option
    *,
    scenario_options: ScenarioOptions,
    model_options: ModelOptions,
    host_options: HostOptions,
    trace_file: Path | None,
    otlp_options: OtlpOptions,
    json_lines: bool,
    show_log: bool,
    view_options: ViewOptions,
) -> int:
    """Keep a conversation with a strategy, one question a line."""
    scenario = scenario_options.read(raw=host_options.raw, limits=host_options.limits)
    guesses = scenario.guesses(ANY_QUESTION, raw=host_options.raw)
    questions = read_json_lines() if json_lines else read_questions()
    view = ChatView(open_console(stderr=False, color=view_options.color), view_options, show_log=show_log)
    model = model_options.choose(scenario.script, "").description
    check = partial(_check, raw=host_options.raw, scripted=model.scripted)
    check(scenario)
    conversation = Chat(
        scenario,
        partial(model_options.choose, scenario.script),
        view,
        raw=host_options.raw,
        strict=host_options.strict,
        check=check,
        interrupt=Interrupt(only_turns=json_lines),
    )
    with (
        otlp_options.sending(trace_file) as kept,
        traced(kept, scenario, model, host_options.transport, command="chat", guesses=guesses) as watcher,
    ):
        storage = host_options.storage_beside(trace_file)
        view.open(scenario, model, (*scenario.notices, *guesses))
        watchers = Watchers(watcher, view.screen)
        with on_ctrl_c(view.screen.say_what_starts):
            conversation.converse(
                questions, partial(started_host, scenario, host_options, watchers, storage, trace_file)
            )
    return int(host_options.strict and conversation.broke_rules)


def _check(scenario: Scenario, *, raw: bool, scripted: bool) -> None:
    scenario.check(ANY_QUESTION, raw=raw)
    if scripted:
        refuse_misfit(scenario)

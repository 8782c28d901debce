"""`devhost run` and `devhost chat`, and `--watch`, which repeats a command when a file changes."""

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import click
from watchfiles import Change, DefaultFilter, watch

from devhost.chat import Chat
from devhost.cli.options.hosting_options import (
    HostOptions,
    ModelOptions,
    OtlpOptions,
    host_options,
    model_options,
    otlp_options,
    started_host,
    trace_option,
    traced,
)
from devhost.cli.options.scenario_options import ScenarioOptions, scenario_options
from devhost.conversation import Conversation, Ended, conversation_report, play, refuse_alone
from devhost.errors import HostError
from devhost.home import devhost_command
from devhost.node.outputs.run import never_begun, report
from devhost.process.session import Watchers
from devhost.protocol.wire import JsonObject
from devhost.scenario import Scenario, refuse_misfit
from devhost.terminal.chat_view import ChatView, read_json_lines, read_questions
from devhost.terminal.run_view import RunView, ViewOptions, open_console, view_options
from devhost.terminal.signals import Interrupt, on_ctrl_c
from devhost.text import real_path
from devhost.words import examples

WATCH = "--watch"
SOURCES = frozenset({".py", ".yaml", ".yml", ".toml", ".txt", ".md", ".html", ".json", ".jinja", ".j2", ".env"})
"""What a person edits; a run writes databases, traces and files of other types."""
LOOK_MILLISECONDS = 200
"""How often it looks whether the run is over."""
PATIENCE_SECONDS = 5
"""For a run that was asked to end."""


class _Sources(DefaultFilter):
    def __call__(self, change: Change, path: str) -> bool:
        return Path(path).suffix in SOURCES and super().__call__(change, path)


def run_again_on_changes(arguments: Sequence[str], paths: Iterable[Path]) -> int:
    """Until Ctrl-C. `arguments`: the command's, with --watch; `paths`: files and folders."""
    command = devhost_command(sys.executable, [each for each in arguments if each != WATCH])
    watched = list(dict.fromkeys(real_path(path) for path in paths))
    places = ", ".join(map(_below_here, watched))
    click.echo(f"watching {places}: a changed file runs the command again, Ctrl-C ends it", err=True)
    process = subprocess.Popen(command)
    is_over = False
    try:
        for changes in _changes(watched):
            if changes:
                _tell(changes)
                _end(process)
                process, is_over = subprocess.Popen(command), False
            elif not is_over and process.poll() is not None:
                is_over = True
                click.echo(f"\nwaiting for a change in {places}; Ctrl-C ends", err=True)
    except KeyboardInterrupt:
        return 0
    finally:
        _end(process)
    return 0


def _changes(watched: Sequence[Path]) -> Iterator[set[tuple[Change, str]]]:
    """Empty sets while nothing changes.

    Not `run_process`: it writes lines of its own, and does not say when a run is over.
    """
    return watch(
        *watched,
        watch_filter=_Sources(),
        debounce=400,  # milliseconds: an editor writes a file in several steps
        rust_timeout=LOOK_MILLISECONDS,
        yield_on_timeout=True,
    )


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGINT)
    try:
        process.wait(PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _tell(changes: set[tuple[Change, str]]) -> None:
    names = sorted({_below_here(Path(path)) for _, path in changes})
    click.echo(f"\nchanged: {', '.join(names)}", err=True)


def _below_here(path: Path) -> str:
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


# `devhost chat`: a conversation with a strategy, one question a line.

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


# The command `run`: a question to a strategy, and what its script's user says after it.

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

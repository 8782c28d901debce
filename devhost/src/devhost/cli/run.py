"""`devhost run` and `devhost chat` for a strategy or a flow, with the options `--watch` and `--otlp`."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from devhost.alone import AgentAlone
from devhost.case import ANY_QUESTION, Case
from devhost.case_options import CaseOptions
from devhost.chat import Chat
from devhost.conversation import Conversation
from devhost.errors import HostError, ParameterError, TraceError
from devhost.home import devhost_command
from devhost.hosting import HostOptions, ModelOptions
from devhost.node.outputs.run import never_begun, report
from devhost.options import command, json_option, option, print_json, trace_option
from devhost.playing import CaseTurn, case_turns, conversation_report, judged_whole
from devhost.protocol.wire import JsonObject
from devhost.script import Ask, TurnScript
from devhost.terminal.chat_view import ChatView, TalkOptions, read_questions
from devhost.terminal.screen import Interrupt, ViewOptions, open_console
from devhost.terminal.tables import facts_table, flow_facts
from devhost.terminal.turn_view import TurnView
from devhost.text import Secrets
from devhost.words import counted

# `--watch` runs the command again whenever a person has edited a file.

WATCH = "--watch"
SOURCES = frozenset({".py", ".yaml", ".yml", ".toml", ".txt", ".md", ".html", ".json", ".jinja", ".j2", ".env"})
"""Suffixes of files that a person edits. A run writes other types of files, such as databases and traces."""


def run_again_on_changes(arguments: Sequence[str], paths: Iterable[Path]) -> int:
    """Runs a command after each change of these files and folders, until Ctrl-C.

    `arguments` contains the arguments of the command, including --watch.
    """
    from watchfiles import Change, DefaultFilter, watch  # noqa: PLC0415 - only --watch needs it

    def is_source(change: Change, path: str) -> bool:
        return Path(path).suffix in SOURCES and DefaultFilter()(change, path)

    command = devhost_command(sys.executable, [each for each in arguments if each != WATCH])
    watched = [path.absolute() for path in paths]
    places = ", ".join(map(os.path.relpath, watched))
    changes = watch(*watched, watch_filter=is_source, rust_timeout=200, yield_on_timeout=True)
    try:
        next(changes)  # from here on no change is missed, even during a run
        while True:
            subprocess.run(command, check=False)
            click.echo(f"\nwaiting for a change in {places}; Ctrl-C ends", err=True)
            changed = next(filter(None, changes))
            click.echo(f"\nchanged: {', '.join(sorted({os.path.relpath(path) for _, path in changed}))}", err=True)
    except KeyboardInterrupt:
        return 0


# `--otlp` sends a run as OpenTelemetry spans when the run has ended, even if it failed.


def _endpoint(_context: click.Context, _option: click.Parameter, url: str | None) -> str | None:
    if url is None:
        return None
    try:
        from devhost.telemetry import endpoint  # noqa: PLC0415 - OpenTelemetry takes half a second to import
    except ModuleNotFoundError as error:
        raise ParameterError(f"--otlp needs the package {error.name}: pip install 'dify-devhost[otlp]'") from error
    return endpoint(url)


@dataclass(frozen=True)
class OtlpOptions:
    """The options that send a run to an OTLP server."""

    endpoint: str | None = option(
        "--otlp URL",
        "Send the run as OpenTelemetry spans to an OTLP server, such as http://localhost:4318, when it is over.",
        callback=_endpoint,
    )
    contents: bool = option("--otlp-contents", "With --otlp: send prompts, answers and results, too.")

    def __post_init__(self) -> None:
        if self.contents and self.endpoint is None:
            raise ParameterError("--otlp-contents goes with --otlp URL")

    @contextmanager
    def sending(self, trace_file: Path | None) -> Iterator[Path | None]:
        """Yields the file for the trace and sends the spans afterwards.

        Without `trace_file`, the file is temporary, because the spans are made from the trace.
        """
        if self.endpoint is None:
            yield trace_file
            return
        with tempfile.TemporaryDirectory(prefix="devhost-otlp-") as folder:
            file = trace_file or Path(folder) / "trace.jsonl"
            try:
                yield file
            except TraceError:  # the file then has no trace of this run
                raise
            except BaseException:
                try:
                    self._send(file, self.endpoint)
                except HostError as error:  # a failure to send must not hide the failure of the run
                    click.echo(str(error), err=True)
                raise
            self._send(file, self.endpoint)

    def _send(self, file: Path, address: str) -> None:
        from devhost.telemetry import agent_spans, send, shown  # noqa: PLC0415 - slow to import
        from devhost.trace.lines import read_trace  # noqa: PLC0415 - only --otlp needs it

        spans = agent_spans(read_trace(file), contents=self.contents)
        send(spans, address)
        click.echo(f"sent {counted(len(spans), 'span')} to {shown(address)}", err=True)


# The facts that are shown before a case is played.


def case_facts(case: Case, turn: TurnScript) -> Table:
    """Returns a table of the facts about a case. `turn` is the first turn of the case, as far as it is known."""
    if isinstance(case.played, AgentAlone):
        names = (case.name, case.script.description, case.played.name)
        return facts_table(*names, case.model, case.notices)
    from devhost.flow.whole import flow_line  # noqa: PLC0415 - a strategy needs no flow

    about_model = ""
    if case.models is None and case.played.asking:
        about_model = case.model.notice
    return flow_facts(flow_line(case, turn), case.notices, about_model)


def asking_for_forms(case: Case, console: Console, hidden: Secrets, *, json_lines: bool) -> Ask | None:
    """Returns the function that answers the forms of a flow for which its script has no answer."""
    if case.played.kind == "strategy":
        return None
    from devhost.flow.forms import ask_at_terminal, ask_by_line  # noqa: PLC0415 - a strategy needs no flow

    if json_lines:
        return ask_by_line
    return ask_at_terminal(console, hidden)


# `devhost chat` holds a conversation, one message per line.


@dataclass(frozen=True)
class ChatOptions(TalkOptions):
    """The options of `devhost chat`."""

    log: bool = option("--log", "Show the log tree after each answer.")


CHAT_GROUPS = (CaseOptions, ModelOptions, HostOptions, ChatOptions, OtlpOptions, ViewOptions)


@command(*CHAT_GROUPS)
def chat(asked: CaseOptions, *options: Any) -> int:  # noqa: ANN401 - one argument per group of options
    """Have a conversation with a strategy or a chatflow, one message per line.

    For example:
      devhost chat --example helpdesk
      devhost chat --example injection --scenario mail --log
      devhost chat --script examples/workflows/cases/approval.yaml
    """
    return talk(asked, *options)


def talk(  # noqa: PLR0913, PLR0917 - one argument per group of options
    asked: CaseOptions,
    models: ModelOptions,
    node: HostOptions,
    options: ChatOptions,
    otlp: OtlpOptions,
    shown: ViewOptions,
) -> int:
    """Holds a conversation and returns the exit code of the command."""
    asked.refuse_workflow()
    case = asked.read_here(node.limits, models)
    questions = read_questions(json_lines=options.json_lines)
    console = open_console(stderr=False, color=shown.color)
    view = ChatView(console, shown, show_log=options.log)
    case.played.check(case, [TurnScript(query=ANY_QUESTION, files=case.first_files)])
    hidden = Secrets(case.secrets)
    ask = asking_for_forms(case, console, hidden, json_lines=options.json_lines)
    with otlp.sending(options.trace) as kept, case.traced(kept, node, "chat") as watcher:
        talk = Chat(
            conversation=Conversation(case, view.show, hidden, ask, watcher),
            view=view,
            strict=node.strict,
            interrupt=Interrupt(only_turns=options.json_lines),
        )
        is_scripted = case.models is None and case.has_script
        view.open_chat(case_facts(case, TurnScript()), case.script.query if is_scripted else "")
        watchers = models.plugins.tell(watcher, view.screen)
        talk.converse(questions, partial(case.host, node, watchers, options.trace))
    return int(node.strict and talk.broke_rules)


# `devhost run` plays the conversation of a script, or another question.


@dataclass(frozen=True)
class RunOptions:
    """The options of `devhost run`."""

    query: str | None = option("--query TEXT", "Ask this instead of the script's own question.")
    alone: bool = option("--alone", "Leave out what the script's user says after the question.")
    watch: bool = option(WATCH, "Run again whenever a file of the plugin, its tools or the script changes.")
    strict_calls: bool = option("--strict-calls", "Exit with 1 if all tool calls of a turn failed, or were refused.")
    trace: Path | None = trace_option()
    as_json: bool = json_option()
    json_lines: bool = option(
        "--json-lines", "Read answers to forms from standard input, each a line of JSON; for other programs."
    )


RUN_GROUPS = (CaseOptions, RunOptions, ModelOptions, HostOptions, OtlpOptions, ViewOptions)


@command(*RUN_GROUPS)
def run(asked: CaseOptions, *options: Any) -> int:  # noqa: ANN401 - one argument per group of options
    """Run a strategy or a flow, and show what happens.

    The command plays the script's whole conversation. The exit code is 1 if a turn does not meet the script's
    expectations or, without expectations, fails.

    For example:
      devhost run --example helpdesk
      devhost run --example helpdesk --scenario two-topics --trace run.jsonl
      devhost run --script examples/workflows/cases/approval.yaml
    """
    return play(asked, *options)


def play(  # noqa: PLR0913, PLR0917 - one argument per group of options
    asked: CaseOptions,
    options: RunOptions,
    models: ModelOptions,
    node: HostOptions,
    otlp: OtlpOptions,
    shown: ViewOptions,
) -> int:
    """Plays a case, or with `--watch` again after each change, and returns the exit code of the command."""
    if options.watch:
        return run_again_on_changes(click.get_current_context().obj, asked.sources)
    case = asked.read_here(node.limits, models)
    turns = case.turns(options.query, alone=options.alone)
    hidden = Secrets(case.secrets)
    console = open_console(stderr=options.as_json, color=shown.color)
    view = TurnView(console, shown)
    ask = asking_for_forms(case, console, hidden, json_lines=options.json_lines)
    ended = list[CaseTurn]()
    with otlp.sending(options.trace) as kept, case.traced(kept, node, "run", turns[0]) as watcher:
        conversation = Conversation(case, view.show, hidden, ask, watcher)
        view.open(case_facts(case, turns[0]), turns[0].query, conversation.files_of(turns[0]))
        watchers = models.plugins.tell(watcher, view.screen)
        try:
            with view.answering(case.host(node, watchers, options.trace)) as host:
                for turn in case_turns(conversation, host, turns):
                    watcher.remark(turn.remark)
                    ended.append(turn)
                    if len(ended) < len(turns) and not turn.ends:
                        _close(view, turn)
                        following = turns[len(ended)]
                        view.go_on(following.query, conversation.files_of(following))
        except HostError as error:
            if options.as_json and isinstance(case.played, AgentAlone):
                lost = report(never_begun(case.played.name, error), case.model)
                print_json(_reports(case, [*(turn.report for turn in ended), lost]))
            raise
    whole = case.expected_of(turns)
    failures = judged_whole(case, whole, ended)
    if options.as_json:
        judged = {} if whole is None else {"failed_expectations": failures}
        print_json({**_reports(case, [turn.report for turn in ended]), **judged})
    _close(view, ended[-1])
    if whole is not None:
        view.show_expectations(failures)
    if len(with_some := [turn for turn in ended if turn.has_expectations]) > 1:
        view.sum_up(turns=len(with_some), failed=sum(bool(turn.failures) for turn in with_some))
    if getattr(ask, "is_interrupted", False):
        raise click.Abort
    broken = node.strict and any(turn.played.findings for turn in ended)
    in_vain = options.strict_calls and any(turn.calls.are_in_vain for turn in ended)
    return int(broken or in_vain or bool(failures) or any(turn.failures for turn in ended))


def _reports(case: Case, reports: Sequence[JsonObject]) -> JsonObject:
    return {**conversation_report(reports), "notices": list(case.notices)}


def _close(view: TurnView, turn: CaseTurn) -> None:
    view.close(turn.played, turn.remark)
    if turn.has_expectations:
        view.show_expectations(turn.failures)

"""`devhost run` and `devhost chat`, with `--watch` and `--otlp`."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click

from devhost.chat import ANY_QUESTION, Chat
from devhost.conversation import Conversation, Ended, conversation_report, play
from devhost.errors import HostError, ParameterError, TraceError
from devhost.expected import Expected, Observed
from devhost.home import devhost_command
from devhost.hosting import HostOptions, ModelOptions, ScenarioOptions, started_host, traced
from devhost.node.outputs.run import never_begun, report
from devhost.options import command, json_option, option, print_json, trace_option
from devhost.protocol.wire import JsonObject
from devhost.scenario import refuse_misfit
from devhost.terminal.chat_view import ChatView, TalkOptions, read_questions, scenario_facts
from devhost.terminal.screen import Interrupt, ViewOptions, open_console
from devhost.terminal.turn_view import TurnView
from devhost.trace.played import turn_of
from devhost.words import counted

# `--watch`: the command again whenever a person has edited a file.

WATCH = "--watch"
SOURCES = frozenset({".py", ".yaml", ".yml", ".toml", ".txt", ".md", ".html", ".json", ".jinja", ".j2", ".env"})
"""What a person edits; a run writes databases, traces and files of other types."""


def run_again_on_changes(arguments: Sequence[str], paths: Iterable[Path]) -> int:
    """Until Ctrl-C. `arguments`: the command's, with --watch; `paths`: files and folders."""
    from watchfiles import Change, DefaultFilter, watch  # noqa: PLC0415 - only --watch needs it

    def is_source(change: Change, path: str) -> bool:
        return Path(path).suffix in SOURCES and DefaultFilter()(change, path)

    command = devhost_command(sys.executable, [each for each in arguments if each != WATCH])
    watched = [path.absolute() for path in paths]
    places = ", ".join(map(os.path.relpath, watched))
    changes = watch(*watched, watch_filter=is_source, rust_timeout=200, yield_on_timeout=True)
    try:
        next(changes)  # from here on nothing is missed, also while a run goes on
        while True:
            subprocess.run(command, check=False)
            click.echo(f"\nwaiting for a change in {places}; Ctrl-C ends", err=True)
            changed = next(filter(None, changes))
            click.echo(f"\nchanged: {', '.join(sorted({os.path.relpath(path) for _, path in changed}))}", err=True)
    except KeyboardInterrupt:
        return 0


# `--otlp`: the run as OpenTelemetry spans, sent when it is over, whether it failed or not.


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
        """The file for the trace: without one, a temporary one, because the spans are made of the trace."""
        if self.endpoint is None:
            yield trace_file
            return
        with tempfile.TemporaryDirectory(prefix="devhost-otlp-") as folder:
            file = trace_file or Path(folder) / "trace.jsonl"
            try:
                yield file
            except TraceError:  # then the file has no trace of this run
                raise
            except BaseException:
                try:
                    self._send(file, self.endpoint)
                except HostError as error:  # which must not replace the failure of the run
                    click.echo(str(error), err=True)
                raise
            self._send(file, self.endpoint)

    def _send(self, file: Path, address: str) -> None:
        from devhost.telemetry import agent_spans, send, shown  # noqa: PLC0415 - as above
        from devhost.trace.lines import read_trace  # noqa: PLC0415 - as above

        spans = agent_spans(read_trace(file), contents=self.contents)
        send(spans, address)
        click.echo(f"sent {counted(len(spans), 'span')} to {shown(address)}", err=True)


# `devhost chat`: a conversation with a strategy, one question a line.


@dataclass(frozen=True)
class ChatOptions(TalkOptions):
    log: bool = option("--log", "Show the log tree after each answer.")


@command(ScenarioOptions, ModelOptions, HostOptions, ChatOptions, OtlpOptions, ViewOptions)
def chat(  # noqa: PLR0913, PLR0917 - one argument per group of options
    asked: ScenarioOptions,
    models: ModelOptions,
    node: HostOptions,
    options: ChatOptions,
    otlp: OtlpOptions,
    shown: ViewOptions,
) -> int:
    """Keep a conversation with a strategy, one question a line.

    For example:
      devhost chat --example helpdesk
      devhost chat --example injection --scenario mail --log
    """
    scenario = asked.read(limits=node.limits, validated=not models.unvalidated)
    questions = read_questions(json_lines=options.json_lines)
    view = ChatView(open_console(stderr=False, color=shown.color), shown, show_log=options.log)
    model = models.choose(scenario.script, "").description
    scenario.check(ANY_QUESTION)
    if model.scripted:
        refuse_misfit(scenario)
    conversation = Chat(
        conversation=Conversation(scenario),
        view=view,
        choose_model=partial(models.choose, scenario.script),
        strict=node.strict,
        interrupt=Interrupt(only_turns=options.json_lines),
    )
    with otlp.sending(options.trace) as kept, traced(kept, scenario, model, node.transport, command="chat") as watcher:
        storage = node.storage_beside(options.trace)
        view.open_chat(scenario, model)
        watchers = models.plugins.tell(watcher, view.screen)
        conversation.converse(questions, partial(started_host, scenario, node, watchers, storage, options.trace))
    return int(node.strict and conversation.broke_rules)


# The command `run`: a question to a strategy, and what its script's user says after it.


@dataclass(frozen=True)
class RunOptions:
    query: str | None = option("--query TEXT", "Ask this instead of the script's own question.")
    alone: bool = option("--alone", "Leave out what the script's user says after the question.")
    watch: bool = option(WATCH, "Run again whenever a file of the plugin, its tools or the script changes.")
    trace: Path | None = trace_option()
    as_json: bool = json_option()


@command(ScenarioOptions, RunOptions, ModelOptions, HostOptions, OtlpOptions, ViewOptions)
def run(  # noqa: PLR0913, PLR0917 - one argument per group of options
    asked: ScenarioOptions,
    options: RunOptions,
    models: ModelOptions,
    node: HostOptions,
    otlp: OtlpOptions,
    shown: ViewOptions,
) -> int:
    """Run a strategy, and show what happens.

    For example:
      devhost run --example helpdesk
      devhost run --example helpdesk --scenario two-topics --trace run.jsonl
    """
    if options.watch:
        return run_again_on_changes(click.get_current_context().obj, asked.sources)
    scenario = asked.read(limits=node.limits, validated=not models.unvalidated)
    question = scenario.question(options.query)
    scenario.check(question)
    choose = partial(models.choose, scenario.script)
    model = choose(question).description
    if model.scripted:
        refuse_misfit(scenario)
    follow_ups = scenario.follow_ups(question) if model.scripted and not options.alone else ()
    script = scenario.script
    is_whole = script is not None and script.begins_with(question) and len(follow_ups) == len(script.then)
    expected = Expected.of(script) if script is not None and is_whole else None
    conversation = Conversation(scenario)
    ended = list[Ended]()
    view = TurnView(open_console(stderr=options.as_json, color=shown.color), shown)

    def print_reports(*lost: JsonObject, **judged: object) -> None:
        if options.as_json:
            reports = conversation_report([*(turn.report for turn in ended), *lost])
            print_json({**reports, "notices": list(scenario.notices), **judged})

    with (
        otlp.sending(options.trace) as kept,
        traced(kept, scenario, model, node.transport, command="run", query=question) as watcher,
    ):
        view.open(scenario_facts(scenario, model), question, conversation.files_of(question))
        storage = node.storage_beside(options.trace)
        watchers = models.plugins.tell(watcher, view.screen)
        try:
            with view.answering(started_host(scenario, node, watchers, storage, options.trace)) as host:
                for turn in play(conversation, question, follow_ups, choose)(host, view.hear):
                    watcher.remark(turn.remark)
                    ended.append(turn)
                    if turn.next_question is not None:
                        view.close(turn_of(turn.run), turn.remark)
                        view.go_on(turn.next_question, conversation.files_of(turn.next_question))
        except HostError as error:
            print_reports(report(never_begun(scenario.strategy.identity.name, error), model))
            raise
        checks = (expected or Expected()).checks(Observed.of([turn.run for turn in ended]))
        failures = [check.sentence for check in checks if not check.passed]
        print_reports(**({} if expected is None else {"failed_expectations": failures}))
        view.close(turn_of(ended[-1].run), ended[-1].remark)
        if expected is not None:
            view.judge(failures)
    broken = node.strict and any(turn.run.findings for turn in ended)
    return int(broken or bool(failures))

"""`devhost run` and `devhost chat`."""

import uuid
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import click

from devhost.chat import Chat
from devhost.conversation import Conversation, Ended, Turns, conversation_report, play
from devhost.errors import HostError
from devhost.expected import Expected, Observed
from devhost.host.host import Host
from devhost.hosting import HostOptions, ModelOptions, ScenarioOptions, started_host, traced
from devhost.models.backend import ModelDescription
from devhost.node.outputs.run import never_begun, report
from devhost.options import json_lines_option, json_option, option, print_json, takes, trace_option
from devhost.process.session import Watcher, Watchers
from devhost.protocol.wire import JsonObject
from devhost.scenario import refuse_misfit
from devhost.terminal.chat_view import ChatView, read_questions
from devhost.terminal.run_view import RunView
from devhost.terminal.screen import Interrupt, ViewOptions, on_ctrl_c, open_console
from devhost.words import examples

# `devhost chat`: a conversation with a strategy, one question a line.

ANY_QUESTION = "?"
"""In place of a question that is not typed yet, while the other parameters are checked."""


@dataclass(frozen=True)
class ChatOptions:
    trace: Path | None = trace_option()
    json_lines: bool = json_lines_option()
    log: bool = option("--log", is_flag=True, help="Show the log tree after each answer.")


@click.command(
    epilog=examples(
        "devhost chat --example helpdesk",
        "devhost chat --example injection --scenario mail --log",
    )
)
@takes(ScenarioOptions, ModelOptions, HostOptions, ChatOptions, ViewOptions)
def chat(
    asked: ScenarioOptions,
    models: ModelOptions,
    node: HostOptions,
    options: ChatOptions,
    shown: ViewOptions,
) -> int:
    """Keep a conversation with a strategy, one question a line."""
    scenario = asked.read(limits=node.limits, validated=not models.unvalidated)
    questions = read_questions(json_lines=options.json_lines)
    view = ChatView(open_console(stderr=False, color=shown.color), shown, show_log=options.log)
    model = models.choose(scenario.script, "").description
    scenario.check(ANY_QUESTION)
    if model.scripted:
        refuse_misfit(scenario)
    conversation = Chat(
        scenario,
        partial(models.choose, scenario.script),
        view,
        strict=node.strict,
        interrupt=Interrupt(only_turns=options.json_lines),
    )
    with traced(options.trace, scenario, model, node.transport, command="chat") as watcher:
        storage = node.storage_beside(options.trace)
        view.open_chat(scenario, model, scenario.notices)
        watchers = Watchers(watcher, view.screen)
        models.plugins.tell(watchers)
        conversation.converse(questions, partial(started_host, scenario, node, watchers, storage, options.trace))
    return int(node.strict and conversation.broke_rules)


# The command `run`: a question to a strategy, and what its script's user says after it.


@dataclass(frozen=True)
class RunOptions:
    query: str | None = option("--query", metavar="TEXT", help="Ask this instead of the script's own question.")
    alone: bool = option("--alone", is_flag=True, help="Leave out what the script's user says after the question.")
    trace: Path | None = trace_option()
    as_json: bool = json_option()


@click.command(
    epilog=examples(
        "devhost run --example helpdesk",
        "devhost run --example helpdesk --scenario two-topics --trace run.jsonl",
    )
)
@takes(ScenarioOptions, RunOptions, ModelOptions, HostOptions, ViewOptions)
def run(
    asked: ScenarioOptions,
    options: RunOptions,
    models: ModelOptions,
    node: HostOptions,
    shown: ViewOptions,
) -> int:
    """Run a strategy and show it."""
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
    conversation = Conversation(scenario, conversation_id=str(uuid.uuid4()))
    turns = play(conversation, question, follow_ups, choose)
    view = RunView(open_console(stderr=options.as_json, color=shown.color), shown)
    shown_turns = _ShownTurns(conversation, view, model, expected, as_json=options.as_json)
    with traced(options.trace, scenario, model, node.transport, command="run", query=question) as watcher:
        shown_turns.open(question)
        storage, watchers = node.storage_beside(options.trace), Watchers(watcher, view.screen)
        models.plugins.tell(watchers)
        shown_turns.play(turns, started_host(scenario, node, watchers, storage, options.trace), watcher)
    broken = node.strict and any(turn.run.findings for turn in shown_turns.ended)
    return int(broken or bool(shown_turns.failures))


@dataclass
class _ShownTurns:
    """What a run shows of its conversation, turn by turn."""

    conversation: Conversation
    view: RunView
    model: ModelDescription
    expected: Expected | None
    as_json: bool
    ended: list[Ended] = field(default_factory=list, init=False)

    def open(self, question: str) -> None:
        scenario = self.conversation.scenario
        facts = (scenario.name, scenario.description, scenario.strategy.identity.name, self.model, question)
        self.view.open(*facts, notices=scenario.notices, files=self.conversation.files_of(question))

    def play(self, turns: Turns, hosting: AbstractContextManager[Host], watcher: Watcher) -> None:
        view = self.view
        try:
            with hosting as host, on_ctrl_c(view.show_how_far):
                view.begin_answer()
                for turn in turns(host, view.show):
                    watcher.remark(turn.remark)
                    self.ended.append(turn)
                    if turn.next_question is not None:
                        view.close(turn.run, turn.remark)
                        view.go_on(turn.next_question, self.conversation.files_of(turn.next_question))
        except HostError as error:
            never = never_begun(self.conversation.scenario.strategy.identity.name, error)
            self._print(report(never, self.model))
            raise
        finally:
            view.abandon()
        judged = {} if self.expected is None else {"failed_expectations": self.failures}
        self._print(**judged)
        view.close(self.ended[-1].run, self.ended[-1].remark)
        if self.expected is not None:
            view.judge(self.failures)

    @property
    def failures(self) -> list[str]:
        """A sentence for each expectation that failed; by default the last run has to end without an error."""
        observed = Observed.of([turn.run for turn in self.ended])
        expected = self.expected or Expected()
        return [check.sentence for check in expected.checks(observed) if not check.passed]

    def _print(self, *lost: JsonObject, **judged: object) -> None:
        if self.as_json:
            reports = [*(turn.report for turn in self.ended), *lost]
            print_json({**conversation_report(reports), "notices": list(self.conversation.scenario.notices), **judged})

"""A conversation with a strategy: each question is a run that gets the conversation so far.

In: a scenario, what the person types, a way to start a host and one to choose a model. Out: what the view shows.
"""

import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import Protocol

from devhost.cli.hosting_options import HostOptions
from devhost.conversation.conversation import Conversation
from devhost.conversation.script import ChooseModel
from devhost.errors import PluginLostError
from devhost.host.host import Host
from devhost.models.backend import ModelBackend
from devhost.node.outputs.run import Run
from devhost.process.stop import Stop
from devhost.scenario.scenario import Scenario
from devhost.terminal.chat_view import ChatView
from devhost.terminal.signals.interrupt import Interrupt

APPROVE, REJECT = "/approve", "/reject"
YES, NO = "yes", "no"
HINT = f"Type {APPROVE} or {REJECT} REASON, or your own answer to the agent."


class HostStarter(Protocol):
    def __call__(self) -> AbstractContextManager[Host]: ...


class Chat:
    def __init__(
        self, scenario: Scenario, options: HostOptions, choose_model: ChooseModel[ModelBackend], view: ChatView
    ) -> None:
        """`choose_model` is called for each question, because a scripted model is used up by its turns."""
        self.broke_rules = False
        self._strict = options.strict
        self._choose_model = choose_model
        self._view = view
        self._conversation = Conversation(
            scenario, conversation_id=str(uuid.uuid4()), raw=options.raw, strict=options.strict
        )
        self._asked: Counter[str] = Counter()
        self._interrupt = Interrupt()

    def converse(self, lines: Iterable[str], start_host: HostStarter) -> None:
        with ExitStack() as hosts, self._interrupt.handled():
            host = hosts.enter_context(start_host())
            for question in self._questions(lines):
                with self._interrupt.stops_a_turn() as stop:
                    run = self._ask(host, question, stop)
                if run.error is not None and run.error.kind == PluginLostError.__name__:
                    self._view.note("The plugin has ended. It is started again, as the daemon would start it.")
                    hosts.close()
                    host = hosts.enter_context(start_host())

    def _questions(self, lines: Iterable[str]) -> Iterator[str]:
        """What the agent is told: the lines, with the two commands as the answers that they stand for."""
        for line in lines:
            command, _, words = line.strip().partition(" ")
            if not self._conversation.carries_state or command not in {APPROVE, REJECT}:
                yield line
            elif not self._conversation.state.waiting:
                self._view.note("Nothing waits for an answer.")
            elif command == REJECT:
                # The reason alone could be an approval, such as "ok".
                yield f"{NO}: {words.strip()}" if words.strip() else NO
            elif words.strip():
                self._view.note(f"{APPROVE} takes no words. To answer with a condition, type it without {APPROVE}.")
            else:
                yield YES

    def _ask(self, host: Host, question: str, stop: Stop) -> Run:
        model = self._choose_model(question, asked=self._asked[question])
        self._asked[question] += 1
        with self._view.turn(self._conversation.files_of(question)) as view:
            run = self._conversation.ask(host, question, model, on_message=view.show, stop=stop)
            hints = (self._conversation.note, HINT if self._conversation.state.waiting else "")
            self._view.close_turn(view, run, show_findings=self._strict, hints=tuple(filter(None, hints)))
        self.broke_rules = self.broke_rules or bool(run.findings)
        return run

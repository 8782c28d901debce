"""A conversation with a strategy: each question is a run that gets the conversation so far.

In: a scenario, questions, a way to start a host and one to choose a model. Out: what the view shows.
"""

import uuid
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack

from devhost.cli.hosting_options import HostOptions
from devhost.errors import PluginLostError
from devhost.host.host import Host
from devhost.models.backend import ModelBackend
from devhost.node.memory import Memory, PastTurn
from devhost.node.outputs.run import Run
from devhost.process.stop import Stop
from devhost.scenario.scenario import Scenario
from devhost.terminal.chat_view import ChatView, was_stopped
from devhost.terminal.interrupt import Interrupt


class Chat:
    def __init__(
        self,
        scenario: Scenario,
        options: HostOptions,
        choose_model: Callable[[str], ModelBackend],
        view: ChatView,
    ) -> None:
        """`choose_model` is called for each question, because a scripted model is used up by its turns."""
        self.broke_rules = False
        self._scenario = scenario
        self._api_fails = scenario.api_fails
        self._options = options
        self._choose_model = choose_model
        self._view = view
        self._memory = Memory()
        self._conversation_id = str(uuid.uuid4())
        self._interrupt = Interrupt()

    def converse(self, questions: Iterable[str], start_host: Callable[[], AbstractContextManager[Host]]) -> None:
        with ExitStack() as hosts, self._interrupt.handled():
            host = hosts.enter_context(start_host())
            for question in questions:
                with self._interrupt.stops_a_turn() as stop:
                    run = self._ask(host, question, stop)
                if run.error is not None and run.error.kind == PluginLostError.__name__:
                    self._view.note("The plugin has ended. It is started again, as the daemon would start it.")
                    hosts.close()
                    host = hosts.enter_context(start_host())

    def _ask(self, host: Host, question: str, stop: Stop) -> Run:
        values = self._scenario.values(question, raw=self._options.raw)
        with self._view.turn() as view:
            run = host.run(
                self._scenario.strategy.identity.name,
                values,
                model=self._choose_model(question),
                variables=self._scenario.variables(question),
                conversation_variables=self._scenario.conversation_variables,
                api_fails=self._api_fails,
                history=self._memory.messages(),
                conversation_id=self._conversation_id,
                on_message=view.show,
                stop=stop,
                raw=self._options.raw,
                strict=self._options.strict,
            )
            self._view.close_turn(view, run, show_findings=self._options.strict)
        self.broke_rules = self.broke_rules or bool(run.findings)
        answer = run.outputs.text if run.error is None or was_stopped(run) else ""
        self._memory.add(PastTurn(question, answer, self._scenario.files(question, raw=self._options.raw)))
        return run

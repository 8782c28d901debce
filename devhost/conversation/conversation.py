"""A conversation as a chatflow holds it around its Agent node: the node's memory, and the strategy's state.

In: questions, one after the other. Out: a `Run` for each.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from devhost.conversation.state import APPROVAL, STATE, KeptState, takes_state
from devhost.errors import RunStoppedError
from devhost.files.local_file import LocalFile, local_files
from devhost.host.host import Host, OnMessage
from devhost.models.backend import ModelBackend
from devhost.models.scripted.script import gist
from devhost.node.memory import Memory, PastTurn
from devhost.node.outputs.run import Run
from devhost.process.stop import Stop
from devhost.protocol.wire import JsonObject
from devhost.scenario.scenario import CONVERSATION, QUESTION, Scenario
from devhost.tools.recorded.tool import recorded_tools
from devhost.tools.tool import Tool

KEPT = "devhost.state"
"""The variable that stands for the chatflow's conversation variable."""


class Conversation:
    def __init__(self, scenario: Scenario, *, conversation_id: str | None, raw: bool, strict: bool) -> None:
        self.state = KeptState()
        self.note = ""
        """What the person has to know of the state after the last run."""
        self.scenario = scenario
        """May be replaced between runs, by one with other parameters."""
        self._api_fails = scenario.api_fails
        self._id = conversation_id
        self._raw = raw
        self._strict = strict
        self._memory = Memory()
        self._asked: Counter[str] = Counter()
        self._added: tuple[LocalFile, ...] = ()
        self._recorded: Sequence[Tool] | None = None

    @property
    def carries_state(self) -> bool:
        """A state that the user sets is constant, as in the node."""
        return takes_state(self.scenario.strategy) and not self.scenario.sets(STATE)

    def ask(  # noqa: PLR0913 - a turn's options, by keyword
        self,
        host: Host,
        question: str,
        model: ModelBackend,
        *,
        on_message: OnMessage,
        stop: Stop | None = None,
        approval: str | None = None,
    ) -> Run:
        """`approval` takes the place of the question as the answer to calls that wait."""
        files = [host.server.offer(file) for file in self._attached(question)]
        self._asked[gist(question)] += 1
        self._added = ()
        variables = self.scenario.variables(question, files)
        variables[CONVERSATION] = variables[CONVERSATION] or self._id or ""
        run = host.run(
            self.scenario.strategy.identity.name,
            self._settings(question, files, approval),
            model=model,
            tools=[*host.tools, *self._recorded_beside(host)],
            variables={**variables, **({KEPT: self.state.text} if self.state.text else {})},
            conversation_variables=self.scenario.conversation_variables,
            api_fails=self._api_fails,
            history=self._memory.messages(),
            conversation_id=self._id,
            on_message=on_message,
            stop=stop,
            raw=self._raw,
            strict=self._strict,
        )
        answer = run.outputs.text if run.error is None or was_stopped(run) else ""
        sent = map(host.server.with_bytes, self.scenario.files(question, files, raw=self._raw))
        self._memory.add(PastTurn(question, answer, tuple(sent)))
        if self.carries_state:
            self.note = self.state.note_on(run)
            self.state = self.state.after(run)
        return run

    def _recorded_beside(self, host: Host) -> Sequence[Tool]:
        """The same in all runs, which share the recorded answers. The host's own tools go first."""
        if self._recorded is None:
            self._recorded = recorded_tools(self.scenario.recorded, instead=host.tools)
        return self._recorded

    def attach(self, path: Path) -> LocalFile:
        """To the next question; ParameterError for what Dify or the strategy does not take."""
        added = local_files([*(file.path for file in self._added), path], self.scenario.attached.limits)
        self.scenario.values(QUESTION, [file.described("") for file in added], raw=self._raw)
        self._added = added
        return added[-1]

    def times_asked(self, question: str) -> int:
        """How often it was asked before; capitals and the last full stop do not count, as in `Script.turns_for`."""
        return self._asked[gist(question)]

    def files_of(self, question: str) -> list[JsonObject]:
        """Those that go with the question if it is asked next, without a URL."""
        return [file.described("") for file in self._attached(question)]

    def _attached(self, question: str) -> tuple[LocalFile, ...]:
        is_first = not self._asked
        written = self.scenario.attached.of_question(question, self.times_asked(question), is_first=is_first)
        return (*written, *self._added)

    def _settings(self, question: str, files: Sequence[JsonObject], approval: str | None) -> JsonObject:
        """What the user set goes before what the conversation hands over."""
        settings = self.scenario.values(question, files, raw=self._raw)
        if self.state.text and self._raw:
            settings = {STATE: self.state.text, APPROVAL: question, **settings}
        elif self.state.text:
            settings = {STATE: {"variable": KEPT}, APPROVAL: {"variable": QUESTION}, **settings}
        return settings if approval is None else {**settings, APPROVAL: approval}


def was_stopped(run: Run) -> bool:
    return run.error is not None and run.error.kind == RunStoppedError.__name__

"""A conversation with a strategy in a terminal."""

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from devhost.conversation import ChooseModel, Conversation
from devhost.errors import HostError, ParameterError
from devhost.files import LocalFile
from devhost.host.host import STARTED_AGAIN, Host, ToolHost
from devhost.models.backend import ModelBackend
from devhost.process.session import Stop
from devhost.protocol.wire import JsonObject
from devhost.scenario import Scenario, parse_assignments, typed_settings
from devhost.terminal.chat_view import ChatView
from devhost.terminal.screen import Interrupt, View

if TYPE_CHECKING:
    from devhost.node.outputs.run import Run

# What every chat does: it reads lines, obeys those that begin with a slash, and asks the others.


class Talk[C: StrEnum, H: ToolHost](ABC):
    """One conversation after another, with a host that is started again when a plugin is lost."""

    commands: type[C]
    meanings: Mapping[C, tuple[str, str]]
    """For each command the words that it takes, and what it does."""
    addressee: str
    """Who gets the lines that are not commands."""

    def __init__(self, view: View, *, interrupt: Interrupt | None = None) -> None:
        self.broke_rules = False
        self._shown = view
        self._interrupt = interrupt or Interrupt()

    def converse(self, lines: Iterable[str], start_host: Callable[[], AbstractContextManager[H]]) -> None:
        with ExitStack() as hosts:
            host = hosts.enter_context(start_host())
            with self._interrupt.handled():
                for question in self._questions(lines):
                    with self._interrupt.stops_a_turn() as stop:
                        self._ask(host, question, stop)
                    if host.lost_a_plugin:
                        self._shown.note(STARTED_AGAIN)
                        hosts.close()
                        host = hosts.enter_context(start_host())

    def _questions(self, lines: Iterable[str]) -> Iterator[str]:
        """What is asked: the lines, with commands as the answers that they stand for. Letter case does not matter."""
        known = {command.value: command for command in self.commands}
        for line in lines:
            if not line.startswith("/"):
                yield line.strip()
                continue
            name, *rest = line.split(maxsplit=1)
            command = known.get(name.lower())
            if command is None:
                self._shown.note(f"{name} is not a command of the chat, and was not sent.\n{self.help}")
            elif (answer := self._obey(command, "".join(rest).strip())) is not None:
                yield answer

    @property
    def help(self) -> str:
        width = max(len(command + words) for command, (words, _) in self.meanings.items())
        lines = [
            f"  {(command + words).ljust(width)}  {meaning}" for command, (words, meaning) in self.meanings.items()
        ]
        last = f"To send {self.addressee} a text that begins with a slash, type a space before it."
        return "\n".join(["Commands:", *lines, last])

    @abstractmethod
    def _obey(self, command: C, words: str) -> str | None:
        """A command's answer; None for a command to the chat."""

    @abstractmethod
    def _ask(self, host: H, question: str, stop: Stop) -> None: ...

    def _attach(self, path: str, added: Callable[[Path], LocalFile], to: str) -> None:
        """`path` may stand in quotes, as a terminal writes a file that is dropped on it."""
        try:
            file = added(Path(path.strip("'\"")))
        except HostError as error:
            self._shown.note(str(error) if path else "/file needs the path of a file.")
            return
        self._shown.note(f"{file.path.name} goes with the next {to}.")


# The strategy's parameters during a chat.


def changed(scenario: Scenario, assignment: str, *, raw: bool) -> Scenario:
    """As if the assignment had been the command's last --param; what a run refuses is not checked here."""
    new = parse_assignments([assignment], option="/param")
    if "query" in new:
        raise ParameterError("/param query: a question is typed in the chat")
    given = new if raw else typed_settings(scenario.strategy, [assignment])
    return replace(scenario, given={**scenario.given, **given})


def settings_of(scenario: Scenario) -> JsonObject:
    """Those that the script or a person sets; all others have their defaults."""
    return {**scenario.written.params, **scenario.given}


# A conversation with a strategy: each question is a run that gets the conversation so far.


class Command(StrEnum):
    APPROVE = "/approve"
    REJECT = "/reject"
    LOG = "/log"
    SOURCES = "/sources"
    PARAM = "/param"
    FILE = "/file"
    RESET = "/reset"
    HELP = "/help"


YES, NO = "yes", "no"
HINT = f"Type {Command.APPROVE} or {Command.REJECT} REASON, or your own answer to the agent."


class Chat(Talk[Command, Host]):
    commands = Command
    meanings = {  # noqa: RUF012 - it is never changed
        Command.APPROVE: ("", "approve the calls that wait"),
        Command.REJECT: (" REASON", "reject them; the agent reads the reason, which may be left out"),
        Command.LOG: ("", "show the log tree of the last run"),
        Command.SOURCES: ("", "show the sources of the last run"),
        Command.PARAM: (
            " KEY=VALUE",
            "set a parameter of the strategy for the next turns; alone, show those that are set",
        ),
        Command.FILE: (" PATH", "send a file with the next question"),
        Command.RESET: ("", "begin a new conversation, with empty memory and state"),
        Command.HELP: ("", "show this list"),
    }
    addressee = "the agent"

    def __init__(  # noqa: PLR0913 - what a run needs, by keyword
        self,
        scenario: Scenario,
        choose_model: ChooseModel[ModelBackend],
        view: ChatView,
        *,
        raw: bool = False,
        strict: bool = False,
        check: Callable[[Scenario], None] = lambda _: None,
        interrupt: Interrupt | None = None,
    ) -> None:
        """`choose_model` is called for each question, because a scripted model is used up by its turns.

        `check` raises a HostError for parameters that no run can have.
        """
        super().__init__(view, interrupt=interrupt)
        self._scenario = scenario
        self._raw = raw
        self._strict = strict
        self._choose_model = choose_model
        self._view = view
        self._check = check
        self._last: Run | None = None
        self._begin()

    def _begin(self) -> None:
        """Begin a conversation: its memory and its state are empty."""
        self._conversation = Conversation(
            self._scenario, conversation_id=str(uuid.uuid4()), raw=self._raw, strict=self._strict
        )

    def _obey(self, command: Command, words: str) -> str | None:
        match command:
            case Command.APPROVE | Command.REJECT:
                return self._answer(command, words)
            case Command.LOG:
                self._view.show_log(self._last)
            case Command.SOURCES:
                self._view.show_sources(self._last)
            case Command.RESET:
                self._begin()
                self._view.note("A new conversation begins: memory and state are empty.")
            case Command.PARAM:
                self._set(words)
            case Command.FILE:
                self._attach(words, self._conversation.attach, "question")
            case Command.HELP:
                self._view.note(self.help)
        return None

    def _answer(self, command: Command, words: str) -> str | None:
        if not self._conversation.carries_state:
            self._view.note(f"{command} has no effect here: the chat hands over no state. Type your answer instead.")
        elif not self._conversation.state.waiting:
            self._view.note("Nothing waits for an answer.")
        elif command is Command.REJECT:
            # The reason alone could be an approval, such as "ok".
            return f"{NO}: {words}" if words else NO
        elif words:
            self._view.note(f"{command} takes no words. To answer with a condition, type it without {command}.")
        else:
            return YES
        return None

    def _set(self, assignment: str) -> None:
        if assignment:
            try:
                scenario = changed(self._scenario, assignment, raw=self._raw)
                self._check(scenario)
            except HostError as error:
                self._view.note(str(error))
                return
            new_guesses = scenario.guesses("?", raw=self._raw)
            for guess in new_guesses:
                self._view.note(guess)
            self._scenario = self._conversation.scenario = scenario
        self._view.show_parameters(settings_of(self._scenario))

    def _ask(self, host: Host, question: str, stop: Stop) -> None:
        model = self._choose_model(question, asked=self._conversation.times_asked(question))
        with self._view.turn(self._conversation.files_of(question)):
            run = self._conversation.ask(host, question, model, on_message=self._view.show, stop=stop)
            hints = (self._conversation.note, HINT if self._conversation.state.waiting else "")
            self._view.close_turn(run, show_findings=self._strict, hints=tuple(filter(None, hints)))
        self.broke_rules = self.broke_rules or bool(run.findings)
        self._last = run

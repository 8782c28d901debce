"""A conversation with a strategy in a terminal."""

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from devhost.conversation import ChooseModel, Conversation
from devhost.errors import HostError, ParameterError
from devhost.host.host import STARTED_AGAIN, Host
from devhost.models.backend import ModelBackend
from devhost.node.outputs.run import Run
from devhost.process.session import Stop
from devhost.protocol.wire import JsonObject
from devhost.scenario import Scenario, parse_assignments, typed_settings
from devhost.terminal.chat_view import ChatView
from devhost.terminal.screen import Interrupt

# The commands of a chat: lines that begin with a slash.


class Command(StrEnum):
    APPROVE = "/approve"
    REJECT = "/reject"
    LOG = "/log"
    SOURCES = "/sources"
    PARAM = "/param"
    FILE = "/file"
    RESET = "/reset"
    HELP = "/help"


def help_on(meanings: Mapping[StrEnum, tuple[str, str]], addressee: str) -> str:
    """`meanings`: for each command the words that it takes, and what it does. `addressee`: who gets other lines."""
    width = max(len(command + words) for command, (words, _) in meanings.items())
    lines = [f"  {(command + words).ljust(width)}  {meaning}" for command, (words, meaning) in meanings.items()]
    last = f"To send {addressee} a text that begins with a slash, type a space before it."
    return "\n".join(["Commands:", *lines, last])


HELP = help_on(
    {
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
    },
    "the agent",
)


@dataclass(frozen=True)
class Typed[C: StrEnum]:
    name: str
    """As it was typed."""
    command: C | None
    """None for an unknown one."""
    words: str


def read_command[C: StrEnum](line: str, commands: type[C]) -> Typed[C]:
    """Letter case does not matter in the command."""
    name, *rest = line.split(maxsplit=1)
    known = {command.value: command for command in commands}
    return Typed(name, known.get(name.lower()), "".join(rest).strip())


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
    return {**({} if scenario.script is None else scenario.script.params), **scenario.given}


# A conversation with a strategy: each question is a run that gets the conversation so far.

YES, NO = "yes", "no"
HINT = f"Type {Command.APPROVE} or {Command.REJECT} REASON, or your own answer to the agent."


class HostStarter(Protocol):
    def __call__(self) -> AbstractContextManager[Host]: ...


class Chat:
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
        self.broke_rules = False
        self._scenario = scenario
        self._raw = raw
        self._strict = strict
        self._choose_model = choose_model
        self._view = view
        self._check = check
        self._last: Run | None = None
        self._interrupt = interrupt or Interrupt()
        self._begin()

    def _begin(self) -> None:
        """Begin a conversation: its memory and its state are empty."""
        self._conversation = Conversation(
            self._scenario, conversation_id=str(uuid.uuid4()), raw=self._raw, strict=self._strict
        )

    def converse(self, lines: Iterable[str], start_host: HostStarter) -> None:
        with ExitStack() as hosts:
            host = hosts.enter_context(start_host())
            with self._interrupt.handled():
                for question in self._questions(lines):
                    with self._interrupt.stops_a_turn() as stop:
                        self._last = self._ask(host, question, stop)
                    if host.lost_a_plugin:
                        self._view.note(STARTED_AGAIN)
                        hosts.close()
                        host = hosts.enter_context(start_host())

    def _questions(self, lines: Iterable[str]) -> Iterator[str]:
        """What the agent is told: the lines, with commands as the answers that they stand for."""
        for line in lines:
            if not line.startswith("/"):
                yield line.strip()
            elif (answer := self._obey(read_command(line, Command))) is not None:
                yield answer

    def _obey(self, typed: Typed[Command]) -> str | None:
        """A command's answer to the agent; None for a command to the chat."""
        match typed.command:
            case Command.APPROVE | Command.REJECT:
                return self._answer(typed.command, typed.words)
            case Command.LOG:
                self._view.show_log(self._last)
            case Command.SOURCES:
                self._view.show_sources(self._last)
            case Command.RESET:
                self._begin()
                self._view.note("A new conversation begins: memory and state are empty.")
            case Command.PARAM:
                self._set(typed.words)
            case Command.FILE:
                self._attach(typed.words)
            case Command.HELP:
                self._view.note(HELP)
            case None:
                self._view.note(f"{typed.name} is not a command of the chat, and was not sent.\n{HELP}")
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

    def _attach(self, path: str) -> None:
        """`path` may stand in quotes, as a terminal writes a file that is dropped on it."""
        try:
            file = self._conversation.attach(Path(path.strip("'\"")))
        except HostError as error:
            self._view.note(str(error) if path else f"{Command.FILE} needs the path of a file.")
            return
        self._view.note(f"{file.path.name} goes with the next question.")

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

    def _ask(self, host: Host, question: str, stop: Stop) -> Run:
        model = self._choose_model(question, asked=self._conversation.times_asked(question))
        with self._view.turn(self._conversation.files_of(question)) as view:
            run = self._conversation.ask(host, question, model, on_message=view.show, stop=stop)
            hints = (self._conversation.note, HINT if self._conversation.state.waiting else "")
            self._view.close_turn(view, run, show_findings=self._strict, hints=tuple(filter(None, hints)))
        self.broke_rules = self.broke_rules or bool(run.findings)
        return run

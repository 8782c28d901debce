"""A conversation with a strategy in a terminal."""

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path

from devhost.conversation import ChooseModel, Conversation
from devhost.errors import HostError
from devhost.files import LocalFile
from devhost.host.host import STARTED_AGAIN, Host, ToolHost
from devhost.models.backend import ModelBackend
from devhost.node.outputs.run import Run
from devhost.process.session import Stop
from devhost.scenario import Scenario
from devhost.terminal.chat_view import ChatView
from devhost.terminal.screen import Interrupt, View

# What every chat does: it reads lines, obeys those that begin with a slash, and asks the others.


@dataclass(frozen=True)
class Command:
    words: str
    """That it takes, with a blank before them."""
    meaning: str
    obey: Callable[[str], str | None]
    """What the command answers in the place of the person; None if it is to the chat."""


RESET = "/reset"


class Talk[H: ToolHost, T](ABC):
    """One conversation after another, with a host that is started again when a plugin is lost."""

    addressee: str
    """Who gets the lines that are not commands."""

    def __init__(
        self, view: View, own: Mapping[str, Command], shows: Mapping[str, Callable[[T], None]], interrupt: Interrupt
    ) -> None:
        """`own`: the commands that other chats do not have; `shows`: what is shown of a turn, and how."""
        self.broke_rules = False
        self._last: T | None = None
        self._commands = {
            **own,
            **{f"/{part}": self._showing(part, show) for part, show in shows.items()},
            "/file": Command(" PATH", "send a file with the next message", self._attach),
            RESET: Command("", "begin a new conversation, with empty memory and state", self._reset),
            "/help": Command("", "show this list", lambda _: self._shown.note(self.help)),
        }
        self._shown = view
        self._interrupt = interrupt

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
        for line in lines:
            if not line.startswith("/"):
                yield line.strip()
                continue
            name, *rest = line.split(maxsplit=1)
            command = self._commands.get(name.lower())
            if command is None:
                self._shown.note(f"{name} is not a command of the chat, and was not sent.\n{self.help}")
            elif (answer := command.obey("".join(rest).strip())) is not None:
                yield answer

    @property
    def help(self) -> str:
        shown = {name + command.words: command.meaning for name, command in self._commands.items()}
        lines = [f"  {name.ljust(max(map(len, shown)))}  {meaning}" for name, meaning in shown.items()]
        last = f"To send {self.addressee} a text that begins with a slash, type a space before it."
        return "\n".join(["Commands:", *lines, last])

    @abstractmethod
    def _ask(self, host: H, question: str, stop: Stop) -> None: ...

    @abstractmethod
    def _begin(self) -> None:
        """Begins a conversation: its memory and its state are empty."""

    @abstractmethod
    def _add(self, path: Path) -> LocalFile:
        """To what goes with the next message."""

    def _showing(self, part: str, show: Callable[[T], None]) -> Command:
        def obey(_: str) -> None:
            self._shown.note("There was no turn yet.") if self._last is None else show(self._last)

        return Command("", f"show the {part} of the last turn", obey)

    def _reset(self, _: str) -> None:
        self._begin()
        self._shown.note("A new conversation begins: memory and state are empty.")

    def _attach(self, path: str) -> None:
        """`path` may stand in quotes, as a terminal writes a file that is dropped on it."""
        try:
            file = self._add(Path(path.strip("'\"")))
        except HostError as error:
            self._shown.note(str(error))
            return
        self._shown.note(f"{file.path.name} goes with the next message.")


# A conversation with a strategy: each question is a run that gets the conversation so far.


YES, NO = "yes", "no"
ANY_QUESTION = "?"
"""In place of a question that is not typed yet, while the other parameters are checked."""
HINT = "Type /approve or /reject REASON, or your own answer to the agent."


class Chat(Talk[Host, Run]):
    addressee = "the agent"

    def __init__(
        self,
        scenario: Scenario,
        choose_model: ChooseModel[ModelBackend],
        view: ChatView,
        *,
        strict: bool = False,
        interrupt: Interrupt | None = None,
    ) -> None:
        """`choose_model` is called for each question, because a scripted model is used up by its turns."""
        own = {
            "/approve": Command("", "approve the calls that wait", self._approve),
            "/reject": Command(" REASON", "reject them, for a reason or without one", self._reject),
            "/param": Command(" KEY=VALUE", "set a parameter of the strategy for the next messages", self._set),
        }
        shows = {"log": view.show_log, "sources": view.show_sources}
        super().__init__(view, own, shows, interrupt or Interrupt())
        self._scenario = scenario
        self._strict = strict
        self._choose_model = choose_model
        self._view = view
        self._begin()

    def _begin(self) -> None:
        self._conversation = Conversation(self._scenario, conversation_id=str(uuid.uuid4()))

    def _add(self, path: Path) -> LocalFile:
        return self._conversation.attach(path)

    def _approve(self, words: str) -> str | None:
        if words:
            self._view.note("/approve takes no words. To answer with a condition, type it without /approve.")
            return None
        return self._if_calls_wait(YES)

    def _reject(self, reason: str) -> str | None:
        """The reason alone could be an approval, such as "ok"."""
        return self._if_calls_wait(f"{NO}: {reason}" if reason else NO)

    def _if_calls_wait(self, answer: str) -> str | None:
        if self._conversation.state.waiting:
            return answer
        self._view.note("Nothing waits for an answer.")
        return None

    def _set(self, assignment: str) -> None:
        """As the command's last --param does; what a run would refuse is not set."""
        try:
            scenario = self._scenario.with_settings([assignment])
            scenario.check(ANY_QUESTION)
        except HostError as error:
            self._view.note(str(error))
            return
        self._scenario = self._conversation.scenario = scenario
        self._view.note(f"{assignment.partition('=')[0]} is set for the next messages.")

    def _ask(self, host: Host, question: str, stop: Stop) -> None:
        model = self._choose_model(question, asked=self._conversation.times_asked(question))
        with self._view.turn(self._conversation.files_of(question)):
            run = self._conversation.ask(host, question, model, on_message=self._view.show, stop=stop)
            hints = (self._conversation.note, HINT if self._conversation.state.waiting else "")
            self._view.close_turn(run, show_findings=self._strict, hints=tuple(filter(None, hints)))
        self.broke_rules = self.broke_rules or bool(run.findings)
        self._last = run

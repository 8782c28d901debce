"""A conversation with a strategy in a terminal."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Protocol

from devhost.conversation import ChooseModel, Conversation, Dialogue
from devhost.errors import HostError
from devhost.host.host import STARTED_AGAIN, Host, ToolHost
from devhost.models.backend import ModelBackend
from devhost.node.outputs.run import Run
from devhost.process.session import Stop
from devhost.terminal.chat_view import ChatView
from devhost.terminal.screen import Interrupt


@dataclass(frozen=True)
class Command:
    words: str
    """That it takes, with a blank before them."""
    meaning: str
    obey: Callable[[str], str | None]
    """What the command answers in the place of the person; None if it is to the chat."""


class TalkView[T](Protocol):
    def note(self, sentence: str) -> None: ...
    def show_log(self, last: T, /) -> None: ...
    def show_sources(self, last: T, /) -> None: ...


@dataclass(kw_only=True)
class Talk[H: ToolHost, T, C: Dialogue](ABC):
    """One conversation after another, with a host that is started again when a plugin is lost.

    It reads lines, obeys those that begin with a slash, and asks the others.
    """

    addressee: ClassVar[str]
    """Who gets the lines that are not commands."""
    conversation: C
    view: TalkView[T]
    strict: bool = False
    """Broken rules of Dify are shown."""
    interrupt: Interrupt = field(default_factory=Interrupt)
    broke_rules: bool = field(default=False, init=False)
    _last: T | None = field(default=None, init=False)

    @cached_property
    def _commands(self) -> Mapping[str, Command]:
        return {
            **self._own,
            "/log": Command("", "show the log of the last turn", lambda _: self._show(self.view.show_log)),
            "/sources": Command("", "show the sources of the last turn", lambda _: self._show(self.view.show_sources)),
            "/file": Command(" PATH", "send a file with the next message", self._attach),
            "/reset": Command("", "begin a new conversation, with empty memory and state", self._reset),
            "/help": Command("", "show this list", lambda _: self.view.note(self.help)),
        }

    @property
    @abstractmethod
    def _own(self) -> Mapping[str, Command]:
        """The commands that other chats do not have."""

    def converse(self, lines: Iterable[str], start_host: Callable[[], AbstractContextManager[H]]) -> None:
        with ExitStack() as hosts:
            host = hosts.enter_context(start_host())
            with self.interrupt.handled():
                for question in self._questions(lines):
                    with self.interrupt.stops_a_turn() as stop:
                        self._ask(host, question, stop)
                    if host.lost_a_plugin:
                        self.view.note(STARTED_AGAIN)
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
                self.view.note(f"{name} is not a command of the chat, and was not sent.\n{self.help}")
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

    def _show(self, show: Callable[[T], None]) -> None:
        self.view.note("There was no turn yet.") if self._last is None else show(self._last)

    def _reset(self, _: str) -> None:
        self.conversation = self.conversation.afresh()
        self.view.note("A new conversation begins: memory and state are empty.")

    def _attach(self, path: str) -> None:
        """`path` may stand in quotes, as a terminal writes a file that is dropped on it."""
        try:
            file = self.conversation.attach(Path(path.strip("'\"")))
        except HostError as error:
            self.view.note(str(error))
            return
        self.view.note(f"{file.path.name} goes with the next message.")


YES = "yes"
NO = "no"
ANY_QUESTION = "?"
"""In place of a question that is not typed yet, while the other parameters are checked."""
HINT = "Type /approve or /reject REASON, or your own answer to the agent."


@dataclass(kw_only=True)
class Chat(Talk[Host, Run, Conversation]):
    addressee = "the agent"
    view: ChatView
    choose_model: ChooseModel[ModelBackend]
    """Called for each question, because a scripted model is used up by its turns."""

    @property
    def _own(self) -> Mapping[str, Command]:
        return {
            "/approve": Command("", "approve the calls that wait", self._approve),
            "/reject": Command(" REASON", "reject them, for a reason or without one", self._reject),
            "/param": Command(" KEY=VALUE", "set a parameter of the strategy for the next messages", self._set),
        }

    def _approve(self, words: str) -> str | None:
        if words:
            self.view.note("/approve takes no words. To answer with a condition, type it without /approve.")
            return None
        return self._if_calls_wait(YES)

    def _reject(self, reason: str) -> str | None:
        """The reason alone could be an approval, such as "ok"."""
        return self._if_calls_wait(f"{NO}: {reason}" if reason else NO)

    def _if_calls_wait(self, answer: str) -> str | None:
        if self.conversation.state.waiting:
            return answer
        self.view.note("Nothing waits for an answer.")
        return None

    def _set(self, assignment: str) -> None:
        """As the command's last --param does; what a run would refuse is not set."""
        try:
            scenario = self.conversation.scenario.with_settings([assignment])
            scenario.check(ANY_QUESTION)
        except HostError as error:
            self.view.note(str(error))
            return
        self.conversation.scenario = scenario
        self.view.note(f"{assignment.partition('=')[0]} is set for the next messages.")

    def _ask(self, host: Host, question: str, stop: Stop) -> None:
        model = self.choose_model(question, asked=self.conversation.times_asked(question))
        with self.view.turn(self.conversation.files_of(question)):
            run = self.conversation.ask(host, question, model, on_message=self.view.hear, stop=stop)
            hints = (self.conversation.note, HINT if self.conversation.state.waiting else "")
            self.view.close_turn(run, show_findings=self.strict, hints=tuple(filter(None, hints)))
        self.broke_rules = self.broke_rules or bool(run.findings)
        self._last = run

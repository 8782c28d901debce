"""A conversation with a strategy or a flow in a terminal: each line is a turn, or a command to the chat."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from devhost.alone import AgentAlone
from devhost.case import ANY_QUESTION
from devhost.conversation import Conversation
from devhost.errors import HostError
from devhost.host.host import STARTED_AGAIN, ToolHost
from devhost.process.session import Stop
from devhost.script import TurnScript
from devhost.terminal.chat_view import ChatView
from devhost.terminal.screen import Interrupt
from devhost.trace.played import PlayedTurn


@dataclass(frozen=True)
class Command:
    words: str
    """The words that the command takes, with a leading blank."""
    meaning: str
    obey: Callable[[str], str | None]
    """Runs the command and returns the answer to send in the user's name, or None."""


YES = "yes"
NO = "no"
HINT = "Type /approve or /reject REASON, or your own answer to the agent."


@dataclass(kw_only=True)
class Chat:
    """A chat of one or more conversations, with a host that is restarted when a plugin is lost.

    A line that begins with a slash is a command. Any other line is sent as a message.
    """

    conversation: Conversation
    view: ChatView
    strict: bool = False
    """Whether violations of Dify's rules are shown."""
    interrupt: Interrupt = field(default_factory=Interrupt)
    broke_rules: bool = field(default=False, init=False)
    _last: PlayedTurn | None = field(default=None, init=False)

    @cached_property
    def _commands(self) -> Mapping[str, Command]:
        own = self._of_a_strategy if self.conversation.case.played.kind == "strategy" else {}
        return {
            **own,
            "/variables": Command("", "show the conversation variables", self._show_variables),
            "/log": Command("", "show the log of the last turn", lambda _: self._show(self.view.show_log)),
            "/sources": Command("", "show the sources of the last turn", lambda _: self._show(self.view.show_sources)),
            "/file": Command(" PATH", "send a file with the next message", self._attach),
            "/reset": Command("", "begin a new conversation, with empty memory and state", self._reset),
            "/help": Command("", "show this list", lambda _: self.view.note(self.help)),
        }

    @property
    def _of_a_strategy(self) -> Mapping[str, Command]:
        return {
            "/approve": Command("", "approve the calls that wait", self._approve),
            "/reject": Command(" REASON", "reject them, for a reason or without one", self._reject),
            "/param": Command(" KEY=VALUE", "set a parameter of the strategy for the next messages", self._set),
        }

    def converse(self, lines: Iterable[str], start_host: Callable[[], AbstractContextManager[ToolHost]]) -> None:
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
        """Yield the messages to send. A command, in any letter case, yields the answer that it stands for."""
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
    def _addressee(self) -> str:
        """The receiver of lines that are not commands."""
        if self.conversation.case.played.kind == "strategy":
            return "the agent"
        return "the flow"

    @property
    def help(self) -> str:
        shown = {name + command.words: command.meaning for name, command in self._commands.items()}
        lines = [f"  {name.ljust(max(map(len, shown)))}  {meaning}" for name, meaning in shown.items()]
        last = f"To send {self._addressee} a text that begins with a slash, type a space before it."
        return "\n".join(["Commands:", *lines, last])

    def _ask(self, host: ToolHost, question: str, stop: Stop) -> None:
        said = self.conversation.typed(question)
        with self.view.turn(self.conversation.files_of(said)):
            turn = self.conversation.play(said, host, stop)
            memory = self.conversation.memory
            hints = (memory.note, HINT if memory.waiting else "")
            self.view.close_turn(turn, show_findings=self.strict, hints=tuple(filter(None, hints)))
        self.broke_rules = self.broke_rules or bool(turn.findings)
        self._last = turn

    def _show(self, show: Callable[[PlayedTurn], None]) -> None:
        self.view.note("There was no turn yet.") if self._last is None else show(self._last)

    def _reset(self, _: str) -> None:
        self.conversation = self.conversation.afresh()
        self.view.note("A new conversation begins: memory and state are empty.")

    def _attach(self, path: str) -> None:
        """Attach a file.

        The path may be in quotes, because a terminal quotes the path of a file that is dropped on it.
        """
        try:
            file = self.conversation.attach(Path(path.strip("'\"")))
        except HostError as error:
            self.view.note(str(error))
            return
        self.view.note(f"{file.path.name} goes with the next message.")

    # Commands of one kind of conversation.

    def _show_variables(self, _: str) -> None:
        self.view.show_variables(self.conversation.variables)

    def _approve(self, words: str) -> str | None:
        if words:
            self.view.note("/approve takes no words. To answer with a condition, type it without /approve.")
            return None
        return self._if_calls_wait(YES)

    def _reject(self, reason: str) -> str | None:
        """Answer no. A reason such as "ok" would be read as an approval if it were sent without the "no"."""
        return self._if_calls_wait(f"{NO}: {reason}" if reason else NO)

    def _if_calls_wait(self, answer: str) -> str | None:
        if self.conversation.memory.waiting:
            return answer
        self.view.note("Nothing waits for an answer.")
        return None

    def _set(self, assignment: str) -> None:
        """Set a parameter for the next messages, like --param. A value that a run would refuse is not set."""
        case = self.conversation.case
        if not isinstance(case.played, AgentAlone):
            return
        try:
            played = case.played.with_settings([assignment])
            played.check(case, [TurnScript(query=ANY_QUESTION)])
        except HostError as error:
            self.view.note(str(error))
            return
        self.conversation.case = replace(case, played=played)
        self.view.note(f"{assignment.partition('=')[0]} is set for the next messages.")

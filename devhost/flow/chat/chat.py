"""A chat with a chatflow: each line is a turn, or a command to the chat.

In: what a person types or pipes. Out: what the view shows of each turn.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Protocol

from devhost.chat.commands import Typed, read_command
from devhost.errors import HostError
from devhost.files.local_file import LocalFile, local_files
from devhost.flow.chat.commands import HELP, FlowCommand
from devhost.flow.chat.conversation import FlowConversation
from devhost.flow.chat.view import FlowChatView
from devhost.flow.surroundings import Surroundings
from devhost.flow.view.report import findings_of
from devhost.flow.view.watching import watched
from devhost.host.tool_host import STARTED_AGAIN, ToolHost
from devhost.limits import HostLimits
from devhost.models.scripted.script import gist
from devhost.process.stop import Stop
from devhost.terminal.signals.interrupt import Interrupt
from devhost.text.secrets import Secrets


class AroundTurn(Protocol):
    def __call__(self, question: str, number: int, asked: int, /, host: ToolHost, stop: Stop) -> Surroundings:
        """`number`: of the turn in the conversation, from 1. `asked`: how often it had this question before."""


class FlowChat:
    def __init__(  # noqa: PLR0913 - what it is made of
        self,
        begin: Callable[[], FlowConversation],
        around: AroundTurn,
        view: FlowChatView,
        *,
        hidden: Secrets,
        limits: HostLimits,
        strict: bool,
    ) -> None:
        """`begin` makes a new conversation. `hidden` is never shown. `strict`: broken rules of Dify are shown."""
        self.broke_rules = False
        self._begin = begin
        self._around = around
        self._view = view
        self._strict = strict
        self._hidden = hidden
        self._limits = limits
        self._added: tuple[LocalFile, ...] = ()
        self._interrupt = Interrupt()
        self._reset()

    def _reset(self) -> None:
        self._conversation = self._begin()
        self._asked: Counter[str] = Counter()

    def converse(self, lines: Iterable[str], start_host: Callable[[], AbstractContextManager[ToolHost]]) -> None:
        with ExitStack() as hosts, self._interrupt.handled():
            host = hosts.enter_context(start_host())
            for question in self._questions(lines):
                with self._interrupt.stops_a_turn() as stop:
                    self._ask(host, question, stop)
                if host.lost_a_plugin:
                    self._view.note(STARTED_AGAIN)
                    hosts.close()
                    host = hosts.enter_context(start_host())

    def _questions(self, lines: Iterable[str]) -> Iterator[str]:
        for line in lines:
            if line.startswith("/"):
                self._obey(read_command(line, FlowCommand))
            else:
                yield line.strip()

    def _obey(self, typed: Typed[FlowCommand]) -> None:
        match typed.command:
            case FlowCommand.VARIABLES:
                self._view.show_variables(self._hidden.masked(self._conversation.variables))
            case FlowCommand.LOG:
                self._view.show_log()
            case FlowCommand.SOURCES:
                self._view.show_sources()
            case FlowCommand.FILE:
                self._attach(typed.words)
            case FlowCommand.RESET:
                self._reset()
                self._view.note("A new conversation begins: memory and conversation variables are as in the beginning.")
            case FlowCommand.HELP:
                self._view.note(HELP)
            case None:
                self._view.note(f"{typed.name} is not a command of the chat, and was not sent.\n{HELP}")

    def _attach(self, path: str) -> None:
        """`path` may stand in quotes, as a terminal writes a file that is dropped on it."""
        try:
            paths = [*(file.path for file in self._added), Path(path.strip("'\""))]
            self._added = local_files(paths, self._limits)
        except HostError as error:
            self._view.note(str(error) if path else f"{FlowCommand.FILE} needs the path of a file.")
            return
        self._view.note(f"{self._added[-1].path.name} goes with the next message.")

    def _ask(self, host: ToolHost, question: str, stop: Stop) -> None:
        asked = self._asked[gist(question)]
        self._asked[gist(question)] += 1
        around = self._around(question, self._asked.total(), asked, host=host, stop=stop)
        could_go_on = not self._conversation.refusal
        files, self._added = self._added, ()
        self._view.begin_turn()
        try:
            played = watched(self._conversation.play(question, around, files), self._view.show, self._hidden)
        finally:
            self._view.abandon()
        findings = findings_of(played.nodes)
        self.broke_rules = self.broke_rules or bool(findings)
        self._view.close_turn(played.ended, played.seconds, findings if self._strict else [])
        if could_go_on and self._conversation.refusal:
            self._view.note(f"{self._conversation.refusal} {FlowCommand.RESET} begins a new one.")

"""A conversation with a chatflow, turn by turn."""

import json
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rich.table import Table
from rich.text import Text

from devhost.chat import RESET, Command, Talk
from devhost.files import LocalFile, local_files
from devhost.flow.document import FlowFile
from devhost.flow.turn import FlowEngine, FlowTurn, Surroundings
from devhost.flow.view import FlowView, findings_of, node_rows, watched
from devhost.host.host import ToolHost
from devhost.limits import HostLimits
from devhost.models.scripted.script import gist
from devhost.node.outputs.outputs import Finding
from devhost.node.parameters import Memory, PastTurn
from devhost.process.session import Stop
from devhost.protocol.wire import JsonObject
from devhost.terminal.screen import STYLES, Interrupt
from devhost.terminal.tables import findings_list, on_a_line, printable, sources_table
from devhost.text import Secrets
from devhost.trace.flow import AnswerText, FlowEnded, FlowEvent
from devhost.words import counted

# What Dify keeps of a conversation with a chatflow, from turn to turn: its id, memory and conversation variables.

CONVERSATION_BYTES = 204_800
"""MAX_VARIABLE_SIZE: of one conversation variable."""


@dataclass(frozen=True)
class ConversationVariable:
    name: str
    type: str
    value: object

    @property
    def bytes(self) -> int:
        """As Dify counts: Python's size of the value, of a list or an object without what is in it."""
        return sys.getsizeof(self.value)

    @property
    def too_large(self) -> bool:
        return self.bytes > CONVERSATION_BYTES


class FlowConversation:
    def __init__(
        self, file: FlowFile, engine: FlowEngine, inputs: Mapping[str, object], conversation_id: str = ""
    ) -> None:
        """`inputs`: the fields of the Start node, which Dify takes from the first message for all that follow."""
        self._file = file
        self._engine = engine
        self._inputs = inputs
        self._id = conversation_id or str(uuid.uuid4())
        self._memory = Memory()
        self._count = 0
        self._values: Mapping[str, object] = {}

    def play(self, query: str, around: Surroundings, files: Sequence[LocalFile] = ()) -> Generator[FlowEvent]:
        """A turn that fails leaves its question in the memory, and the variables as far as they were set."""
        self._count += 1
        if refusal := self.refusal:
            yield FlowEnded("failed", {}, refusal, self._values)
            return
        turn = FlowTurn(query, self._inputs, files, self._id, self._count, self._values, self._memory.all_messages())
        said = ""
        for event in self._engine(self._file, turn, around):
            match event:
                case AnswerText():
                    said += event.text
                case FlowEnded():
                    self._values = event.conversation
                    self._memory.add(PastTurn(query, _answer(event, said), _for_memory(files, around)))
            yield event

    @property
    def variables(self) -> list[ConversationVariable]:
        return [
            ConversationVariable(each.name, each.value_type, self._values.get(each.name, each.value))
            for each in self._file.conversation_variables
        ]

    @property
    def refusal(self) -> str:
        """Why Dify fails every later message of this conversation; empty if it does not."""
        return " ".join(
            f"The conversation variable {each.name!r} has {each.bytes:,} bytes. Dify takes {CONVERSATION_BYTES:,} "
            "(MAX_VARIABLE_SIZE) and fails every later message of this conversation."
            for each in self.variables
            if each.too_large
        )


def _for_memory(files: Sequence[LocalFile], around: Surroundings) -> tuple[JsonObject, ...]:
    if around.host is None:
        return ()
    server = around.host.server
    return tuple(server.with_bytes(server.offer(file)) for file in files)


def _answer(end: FlowEnded, said: str) -> str:
    """What Dify stores as the message's answer: nothing of a turn that failed, what came of one that ended early."""
    match end.status:
        case "failed":
            return ""
        case "stopped" | "paused":
            return said
        case _:
            return str(end.outputs.get("answer", ""))


# What a person sees of a chat with a flow: answers as they stream, a line about each turn, what commands show.

NOTHING_YET = "There was no turn yet."


class FlowChatView(FlowView):
    def begin(self, file: FlowFile, notices: Sequence[str]) -> None:
        self._console.print(
            Text(printable(f"{file.name or file.path.stem} ({file.kind}, {counted(len(file.nodes), 'node')})"), "bold")
        )
        for notice in notices:
            self.note(notice)
        self.note("Ctrl-C ends a turn, Ctrl-D the chat; /help lists the commands.")

    def begin_turn(self) -> None:
        self._begin()

    def close_turn(self, ended: FlowEnded, seconds: float, findings: Sequence[Finding]) -> None:
        self._finish_answer(ended)
        if ended.error:
            self._console.print(Text(printable(ended.error), "red"), soft_wrap=True)
        if findings:
            self._console.print(findings_list(findings))
        ending, nodes = self._ending(ended), counted(len(self._rows), "node")
        style = "dim" if ending.level == "good" else STYLES[ending.level]
        self._console.print(Text(f"{nodes}, {ending.after(seconds)}", style))

    def show_log(self) -> None:
        """The nodes of the last turn, with the trees of its agents."""
        if self._rows:
            self._console.print(node_rows(self._rows, whole=self._options.verbose))
        else:
            self.note(NOTHING_YET)

    def show_sources(self) -> None:
        if self._sources:
            self._console.print(sources_table(self._sources))
        else:
            self.note("The last turn has no sources." if self._rows else NOTHING_YET)

    def show_variables(self, variables: Sequence[ConversationVariable]) -> None:
        if not variables:
            self.note("The flow has no conversation variables.")
            return
        table = Table(box=None, pad_edge=False)
        for heading in ("variable", "type", "value", "bytes"):
            table.add_column(heading, justify="right" if heading == "bytes" else "left")
        for each in variables:
            value = (
                each.value if isinstance(each.value, str) else json.dumps(each.value, ensure_ascii=False, default=str)
            )
            size = Text(f"{each.bytes:,}", "red" if each.too_large else "")
            shown = [Text(printable(text)) for text in (each.name, each.type, on_a_line(value))]
            table.add_row(*shown, size)
        self._console.print(table)


# A chat with a chatflow: each line is a turn, or a command to the chat.


class AroundTurn(Protocol):
    def __call__(self, question: str, number: int, asked: int, /, host: ToolHost, stop: Stop) -> Surroundings:
        """`number`: of the turn in the conversation, from 1. `asked`: how often it had this question before."""


class FlowChat(Talk[ToolHost]):
    addressee = "the flow"

    def __init__(  # noqa: PLR0913 - what it is made of
        self,
        begin: Callable[[], FlowConversation],
        around: AroundTurn,
        view: FlowChatView,
        *,
        hidden: Secrets,
        limits: HostLimits,
        strict: bool,
        interrupt: Interrupt | None = None,
    ) -> None:
        """`begin` makes a new conversation. `hidden` is never shown. `strict`: broken rules of Dify are shown."""
        meaning = "show the conversation variables, with their types and sizes"
        super().__init__(view, {"/variables": Command("", meaning, self._show_variables)}, interrupt=interrupt)
        self._new = begin
        self._around = around
        self._view = view
        self._strict = strict
        self._hidden = hidden
        self._limits = limits
        self._added: tuple[LocalFile, ...] = ()
        self._begin()

    def _begin(self) -> None:
        self._conversation = self._new()
        self._asked: Counter[str] = Counter()

    def _show_variables(self, _: str) -> None:
        self._view.show_variables(self._hidden.masked(self._conversation.variables))

    def _show_log(self, _: str) -> None:
        self._view.show_log()

    def _show_sources(self, _: str) -> None:
        self._view.show_sources()

    def _add(self, path: Path) -> LocalFile:
        self._added = local_files([*(file.path for file in self._added), path], self._limits)
        return self._added[-1]

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
            self._view.note(f"{self._conversation.refusal} {RESET} begins a new one.")

"""What Dify keeps of a conversation with a chatflow, from turn to turn: its id, memory and conversation variables.

In: questions, one after the other. Out: the events of each turn.
"""

import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from devhost.files.local_file import LocalFile
from devhost.flow.document import FlowFile
from devhost.flow.events import AnswerText, FlowEnded, FlowEvent
from devhost.flow.surroundings import FlowEngine, FlowTurn, Surroundings
from devhost.node.memory import Memory, PastTurn
from devhost.node.outputs.final_findings import CONVERSATION_BYTES
from devhost.protocol.wire import JsonObject


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
    def __init__(self, file: FlowFile, engine: FlowEngine, inputs: Mapping[str, object]) -> None:
        """`inputs`: the fields of the Start node, which Dify takes from the first message for all that follow."""
        self._file = file
        self._engine = engine
        self._inputs = inputs
        self._id = str(uuid.uuid4())
        self._memory = Memory()
        self._count = 0
        self._values: Mapping[str, object] = {}

    def play(self, query: str, around: Surroundings, files: Sequence[LocalFile] = ()) -> Iterator[FlowEvent]:
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

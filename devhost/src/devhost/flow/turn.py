"""What a turn of a flow is played with, what a conversation keeps from turn to turn, and the engine that plays it."""

import importlib
import importlib.util
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NoReturn, cast

from devhost.errors import FlowEnvironmentError
from devhost.files import LocalFile
from devhost.flow.document import FlowFile
from devhost.flow.forms import Ask, GivenAnswers
from devhost.flow.outside import NOTHING, Allowed
from devhost.flow.script import Knowledge
from devhost.home import REPOSITORY, devhost_command
from devhost.host.host import ToolHost
from devhost.models.backend import ModelBackend
from devhost.node.parameters import PastTurn, messages_of
from devhost.process.session import Stop
from devhost.protocol.wire import JsonObject
from devhost.tools.tool import Tool
from devhost.trace.flow import AnswerText, FlowEnded, FlowEvent, FlowNode

# What the user says, and what devhost puts in the place of Dify's services.


@dataclass(frozen=True)
class FlowTurn:
    """One message of a conversation, or the one run of a workflow."""

    query: str = ""
    inputs: Mapping[str, object] = field(default_factory=dict)
    """The fields of the Start node, by variable; a field for files has a `LocalFile`, or a list of them."""
    files: Sequence[LocalFile] = ()
    """`sys.files`."""
    conversation_id: str = ""
    dialogue_count: int = 1
    """1 in the first turn, as Dify counts."""
    conversation: Mapping[str, object] = field(default_factory=dict)
    """Conversation variables that an earlier turn has set, by name; the others have the file's values."""
    history: Sequence[JsonObject] = ()
    """The messages of the turns before, all of them: each node with memory gets as many as its settings allow."""


type ModelOfNode = Callable[[FlowNode, str], ModelBackend]
"""The model that answers this run of the node; the text is the question."""
type Heard = Callable[[FlowNode, Literal["llm", "tool"], JsonObject, Iterator[JsonObject]], Iterator[JsonObject]]
"""Hands on the answer to what a node asks of a model or a tool itself."""


def unheard(_node: FlowNode, _kind: str, _request: JsonObject, answer: Iterator[JsonObject], /) -> Iterator[JsonObject]:
    return answer


@dataclass(frozen=True)
class Surroundings:
    host: ToolHost | None
    """A `Host` if the flow has Agent nodes; None only for a flow without plugins and files."""
    model: ModelOfNode
    recorded: Sequence[Tool] = ()
    """Tools that answer from a recording, beside those of the host."""
    answers: GivenAnswers = field(default_factory=dict)
    """To the forms of the flow."""
    ask: Ask | None = None
    """For forms without a given answer."""
    knowledge: Knowledge = field(default_factory=dict)
    stop: Stop | None = None
    """Ends the turn from outside."""
    allowed: Allowed = NOTHING
    heard: Heard = unheard

    @property
    def tools(self) -> Sequence[Tool]:
        return (*(() if self.host is None else self.host.tools), *self.recorded)


type FlowEngine = Callable[[FlowFile, FlowTurn, Surroundings], Iterator[FlowEvent]]
"""Plays one turn; the last event is a `FlowEnded`."""


# What Dify keeps of a conversation with a chatflow, from turn to turn: its id, memory and conversation variables.

CONVERSATION_BYTES = 204_800
"""MAX_VARIABLE_SIZE: of one conversation variable."""


class FlowConversation:
    def __init__(
        self, file: FlowFile, engine: FlowEngine, inputs: Mapping[str, object], conversation_id: str = ""
    ) -> None:
        """`inputs`: the fields of the Start node, which Dify takes from the first message for all that follow."""
        self._file = file
        self._engine = engine
        self._inputs = inputs
        self._id = conversation_id or str(uuid.uuid4())
        self._past: list[PastTurn] = []
        self._count = 0
        self._values: Mapping[str, object] = {}

    def play(self, query: str, around: Surroundings, files: Sequence[LocalFile] = ()) -> Generator[FlowEvent]:
        """A turn that fails leaves its question in the memory, and the variables as far as they were set."""
        self._count += 1
        if refusal := self._refusal:
            yield FlowEnded("failed", {}, refusal, self._values)
            return
        turn = FlowTurn(query, self._inputs, files, self._id, self._count, self._values, messages_of(self._past))
        said = ""
        for event in self._engine(self._file, turn, around):
            match event:
                case AnswerText():
                    said += event.text
                case FlowEnded():
                    self._values = event.conversation
                    self._past.append(PastTurn(query, _answer(event, said), _for_memory(files, around)))
            yield event

    @property
    def variables(self) -> dict[str, object]:
        return {each.name: self._values.get(each.name, each.value) for each in self._file.conversation_variables}

    @property
    def _refusal(self) -> str:
        """Why Dify fails every later message of this conversation; empty if it does not.

        Dify counts Python's size of the value: of a list or an object without what is in it.
        """
        sizes = {name: sys.getsizeof(value) for name, value in self.variables.items()}
        return " ".join(
            f"The conversation variable {name!r} has {size:,} bytes. Dify takes {CONVERSATION_BYTES:,} "
            "(MAX_VARIABLE_SIZE) and fails every later message of this conversation."
            for name, size in sizes.items()
            if size > CONVERSATION_BYTES
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


# Where Dify's workflow engine is: in devhost's own environment, or in `.venv-flow` of the repository.
#
# The first `devhost flow` makes `.venv-flow`. Nothing else of devhost needs the engine.

ENGINE = "graphon"
NO_ENGINE = (
    "a flow runs on Dify's workflow engine, which is not installed: pip install 'dify-devhost[flow]', with Python 3.12 "
    "or 3.13"
)


def go_on_in_flow_environment(arguments: Sequence[str], repository: Path | None = REPOSITORY) -> NoReturn:
    """Makes the environment when it is missing or out of date; FlowEnvironmentError if that fails."""
    if repository is None:
        raise FlowEnvironmentError(NO_ENGINE)
    set_up, python = repository / "scripts" / "setup", str(repository / ".venv-flow" / "bin" / "python")
    made = subprocess.run([str(set_up), "flow"], check=False, stdout=sys.stderr)
    if made.returncode:
        raise FlowEnvironmentError(f"{set_up} flow could not make the environment of the workflow engine; see above")
    os.execv(python, devhost_command(python, arguments))  # noqa: S606 - its own interpreter


def has_engine() -> bool:
    """Whether this interpreter's environment has the engine."""
    return importlib.util.find_spec(ENGINE) is not None


def load_engine() -> FlowEngine:
    return cast("FlowEngine", importlib.import_module("devhost.flow.engine.play").play)

"""What a flow needs besides its file: what the user says, and what devhost puts in the place of Dify's services."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from devhost.errors import UnansweredFormError
from devhost.files import LocalFile
from devhost.flow.document import AnswerForm, FlowFile, FlowNode, Form, FormAnswer
from devhost.flow.events import FlowEvent
from devhost.flow.outside import NOTHING, Allowed
from devhost.flow.script import Knowledge
from devhost.host.host import ToolHost
from devhost.models.backend import ModelBackend
from devhost.process.session import Stop
from devhost.protocol.wire import JsonObject


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


class ModelOfNode(Protocol):
    def __call__(self, node: FlowNode, question: str, /) -> ModelBackend:
        """The model that answers this run of the node."""


def leave_open(form: Form) -> FormAnswer:
    raise UnansweredFormError(f"the form of {form.node} has no answer")


@dataclass(frozen=True)
class Surroundings:
    host: ToolHost | None
    """A `Host` if the flow has Agent nodes; None only for a flow without plugins and files."""
    model: ModelOfNode
    answer_form: AnswerForm = leave_open
    knowledge: Knowledge = field(default_factory=dict)
    stop: Stop | None = None
    """Ends the turn from outside."""
    allowed: Allowed = NOTHING


class FlowEngine(Protocol):
    def __call__(self, file: FlowFile, turn: FlowTurn, around: Surroundings, /) -> Iterator[FlowEvent]:
        """Plays one turn; the last event is a `FlowEnded`."""

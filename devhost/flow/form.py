"""A form that a Human Input node shows to a person, and the person's answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from devhost.files.local_file import LocalFile
from devhost.flow.document import FlowNode

type FieldKind = Literal["paragraph", "select", "file", "file-list"]
type FieldValue = str | tuple[LocalFile, ...]
"""Files of a field for one file or for several; a text of the others."""

TIMEOUT = "__timeout"
"""The handle of the edge that a flow takes when the form was not answered in time."""


@dataclass(frozen=True)
class FormField:
    name: str
    kind: FieldKind
    default: str = ""
    """Of a paragraph."""
    options: tuple[str, ...] = ()
    """Of a select."""


@dataclass(frozen=True)
class Button:
    id: str
    title: str


@dataclass(frozen=True)
class Form:
    node: FlowNode
    content: str
    """Markdown; `{{#$output.NAME#}}` stands where a field is."""
    fields: tuple[FormField, ...]
    buttons: tuple[Button, ...]
    can_time_out: bool
    """Whether an edge leads on from a form that was not answered in time."""


@dataclass(frozen=True)
class FormAnswer:
    button: str
    """Its id, or TIMEOUT."""
    values: Mapping[str, FieldValue] = field(default_factory=dict)
    """By the field's name; one for each field, unless the form timed out."""


class AnswerForm(Protocol):
    def __call__(self, form: Form, /) -> FormAnswer:
        """UnansweredFormError if the form stays open: the flow then stays paused."""

"""A form as the DSL declares it (graphon 0.5.0, `nodes/human_input/entities.py`; 0.8.0 leaves these fields to Dify).

In: a Human Input node's data. Out: a `DeclaredForm`, which becomes a `Form` with the values of variables.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from devhost.errors import FlowFileError
from devhost.flow.document import FlowFile, FlowNode
from devhost.flow.form import TIMEOUT, Button, FieldKind, FieldValue, Form, FormField
from devhost.text.yaml_file import describe

HUMAN_INPUT = "human-input"
FIELD = re.compile(r"\{\{#\$output\.([a-zA-Z_][a-zA-Z0-9_]{0,29})#\}\}")
"""Where the content of a form has a field."""


class _Data(BaseModel):
    """Delivery methods and the time until the timeout are Dify's matter."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class _Source[Value](_Data):
    """A constant, or the variable that holds the value."""

    type: Literal["constant", "variable"]
    selector: tuple[str, ...] = ()
    value: Value | None = None


class _Input(_Data):
    output_variable_name: str
    type: FieldKind = "paragraph"
    default: _Source[str] | None = None
    option_source: _Source[tuple[str, ...]] | None = None


class _Action(_Data):
    id: str
    title: str


class Variables(Protocol):
    def rendered(self, template: str) -> str:
        """A text with the values of its variables."""

    def value(self, selector: Sequence[str]) -> object:
        """None for a variable that is not set."""


class DeclaredForm(_Data):
    form_content: str = ""
    inputs: tuple[_Input, ...] = ()
    user_actions: tuple[_Action, ...] = Field(min_length=1)

    @classmethod
    def of(cls, node: FlowNode) -> Self:
        try:
            return cls.model_validate(node.data)
        except ValidationError as error:
            raise FlowFileError(f"{node} is not a form: {describe(error)}") from error

    def asked(self, file: FlowFile, node: FlowNode, variables: Variables) -> Form:
        return Form(
            node,
            variables.rendered(self.form_content),
            tuple(_field(each, variables) for each in self.inputs),
            tuple(Button(action.id, action.title) for action in self.user_actions),
            can_time_out(file, node),
        )


def wrong_forms(file: FlowFile) -> Iterator[str]:
    for node in file.nodes.values():
        if node.type == HUMAN_INPUT:
            try:
                DeclaredForm.of(node)
            except FlowFileError as error:
                yield str(error)


def can_time_out(file: FlowFile, node: FlowNode) -> bool:
    return any(edge.get("source") == node.id and edge.get("sourceHandle") == TIMEOUT for edge in file.edges)


def filled_content(form: Form, values: Mapping[str, FieldValue]) -> str:
    """The content with the person's values in the place of the fields; of files their number."""

    def shown(found: re.Match[str]) -> str:
        value = values.get(found[1], found[0])
        if isinstance(value, str):
            return value
        return "[file]" if len(value) == 1 else f"[{len(value)} files]"

    return FIELD.sub(shown, form.content)


def _field(given: _Input, variables: Variables) -> FormField:
    default = "" if given.default is None else _value(given.default, variables)
    options = () if given.option_source is None else _value(given.option_source, variables)
    return FormField(
        given.output_variable_name,
        given.type,
        "" if default is None else str(default),
        tuple(map(str, options)) if isinstance(options, list | tuple) else (),
    )


def _value(source: _Source[Any], variables: Variables) -> object:
    return variables.value(source.selector) if source.type == "variable" else source.value

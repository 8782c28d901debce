"""Runs one node of a recorded flow alone. A form shows its variables with their values from the turn."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from starlette.responses import Response

from devhost.console.forms import InputField, Labels, RunForm, submitted
from devhost.console.found import shortened
from devhost.console.setup import FLOW, TYPED, Setup, Values, number_in
from devhost.console.web import Console
from devhost.errors import ConsoleError
from devhost.flow.alone import NodeAlone, NodeInput
from devhost.flow.document import FlowFile
from devhost.plugin.declaration import I18n, Parameter
from devhost.text import json_or, real_path
from devhost.trace.lines import read_trace
from devhost.trace.turns import STRATEGY, TracedTurn, traced_turns


def _before(turns: Sequence[TracedTurn], node: str) -> Mapping[str, object]:
    """Returns the variables by key, as they were when the node last began in the last turn.

    Variables that the trace does not contain are left out.
    """
    *earlier, turn = turns
    facts = turn.facts
    if facts.node:
        return {**facts.inputs, "sys.query": facts.query}
    began = max((row.began for row in turn.rows.values() if row.node.id == node), default=turn.finished)
    values: dict[str, object] = {"sys.query": facts.query}
    for each in earlier[-1:]:
        values |= {f"conversation.{name}": value for name, value in each.end.conversation.items()}
    for row in turn.rows.values():
        if row.ended is not None and row.finished is not None and row.finished <= began:
            values |= {f"{row.node.id}.{name}": value for name, value in row.outputs.items()}
    return values


def _typed(known: NodeInput, value: object) -> object:
    """Returns a value in the form that `devhost flow --input` reads: a text that looks like JSON is encoded as JSON."""
    if known.kind == "files":
        return None  # a trace contains only the names of files
    if known.kind == "json" and isinstance(value, str) and json_or(value, None) is not None:
        return json.dumps(value)
    return value


def _field(known: NodeInput, before: Mapping[str, object], values: Values) -> InputField:
    kinds = {"text": "string", "json": "object", "files": "files"}
    hint = HINTS[known.kind]
    if known.kind == "text" and not known.is_required:
        hint = "Left empty, it is as in the app."
    declared = Parameter(
        name=known.key,
        label=I18n(en_US=known.label),
        type=kinds[known.kind],
        required=known.is_required,
        help=I18n(en_US=hint),
    )
    return InputField.of(declared, _typed(known, before.get(known.key)), values)


HINTS: Mapping[str, str] = {"text": "", "json": "JSON, or a text.", "files": "A path after @, such as @picture.png."}
LABELS: Labels = {}
"""No labels are needed, because an error from a node names its variable."""


@dataclass(frozen=True, kw_only=True)
class NodeForm(RunForm):
    """A form with the variables of one node."""

    labels = LABELS
    name: str
    turn: int
    node: NodeAlone
    known: frozenset[str]
    """The variables whose values are in the trace. Only such a variable may be sent as an empty text."""
    was: Mapping[str, str]
    """The form values that started the flow."""

    @property
    def setup(self) -> Setup:
        """How to run the node, with all variables, because no other file contains their values."""
        kept = {key: value for key, value in self.was.items() if not key.startswith(TYPED)}
        given = {TYPED + each.name: each.text for each in self.fields if each.text or each.name in self.known}
        return Setup(kind="flow", values={**kept, "play": "run", "node": self.node.node.id, **given})


def form_of(console: Console, name: str, values: Values) -> NodeForm:
    trace = read_trace(console.folder.trace(name))
    turns = [turn for turn in traced_turns(trace) if turn.facts.kind != STRATEGY]
    if not turns:
        raise ConsoleError(f"{name} is not a run of a flow: it has no nodes")
    number = min(number_in(values, "turn") or len(turns), len(turns))
    turn = turns[number - 1]
    file = Path(turn.facts.file)
    setup = console.folder.setup(name)
    was = {"source": f"{FLOW}{shortened(real_path(file))}"}
    if setup is not None:
        was = setup.values
    alone = NodeAlone.of(FlowFile.read(file), values.get("node") or turn.facts.node)
    before = _before(turns[:number], alone.node.id)
    known = frozenset(key for key, value in before.items() if value is not None)
    fields = tuple(_field(each, before, values) for each in alone.inputs.values())
    return NodeForm(values=values, fields=fields, name=name, turn=number, node=alone, known=known, was=was)


def form(console: Console, asked: Values, name: str) -> Response:
    """Shows the form for the turn and the node in the address."""
    values = {each: asked[each] for each in ("turn", "node") if each in asked}
    return console.page("run_node.html.j2", form=form_of(console, name, values), title=console.title(name))


def submit(console: Console, given: Values, name: str) -> Response:
    return submitted(console, "run_node.html.j2", form_of(console, name, given), title=console.title(name))

"""Human Input on the engine: a form pauses the flow until it has an answer.

In: what the engine asks of a Human Input node. Out: a `Form`, kept here while the flow is paused, as Dify's database
keeps it; then the answer, as the outputs that Dify's node has.
"""

import uuid
from collections import defaultdict, deque
from collections.abc import Sequence

from graphon.engine_events.graph import GraphRunPausedEvent
from graphon.entities.pause_reason import HitlRequired
from graphon.nodes.human_input.entities import Completed, Expired, HITLContext, HITLDecision, PauseRequested
from graphon.runtime.runtime_state_protocol import ReadOnlyVariablePool
from graphon.variables.factory import build_segment
from graphon.variables.segments import Segment
from graphon.variables.template_resolution import convert_template

from devhost.files.server import FileServer
from devhost.flow.document import FlowFile
from devhost.flow.engine.files.made import all_uploaded
from devhost.flow.form import TIMEOUT, FieldValue, Form, FormAnswer, FormField
from devhost.flow.forms.declared import DeclaredForm, filled_content

ACTION, CONTENT = "__action_id", "__rendered_content"
"""Outputs that a form has besides its fields."""


class _Variables:
    def __init__(self, pool: ReadOnlyVariablePool) -> None:
        self._pool = pool

    def rendered(self, template: str) -> str:
        return convert_template(self._pool, template).markdown

    def value(self, selector: Sequence[str]) -> object:
        found = self._pool.get(selector)
        return None if found is None else found.to_object()


class Forms:
    """Of one turn. In an iteration a node asks several times: its answers are taken in the order of its questions."""

    def __init__(self, file: FlowFile, server: FileServer | None = None) -> None:
        self._file = file
        self._server = server
        self._asked: dict[str, Form] = {}
        self._answers: defaultdict[str, deque[tuple[Form, FormAnswer]]] = defaultdict(deque)

    def decide(self, context: HITLContext) -> HITLDecision:
        if answers := self._answers[context.node_id]:
            return _decided(*answers.popleft(), self._server)
        node = self._file.nodes[context.node_id]
        session = str(uuid.uuid4())
        self._asked[session] = DeclaredForm.of(node).asked(self._file, node, _Variables(context.variable_pool))
        return PauseRequested(session)

    def open(self, event: GraphRunPausedEvent) -> tuple[Form, ...]:
        """Those that the flow is paused for."""
        return tuple(self._asked[reason.session_id] for reason in event.reasons if isinstance(reason, HitlRequired))

    def answer(self, form: Form, answer: FormAnswer) -> None:
        self._answers[form.node.id].append((form, answer))


def _decided(form: Form, answer: FormAnswer, server: FileServer | None) -> HITLDecision:
    """Handles and outputs as of graphon 0.5.0, whose node had them in itself."""
    if answer.button == TIMEOUT:
        return Expired(TIMEOUT, {ACTION: build_segment("")})
    values = {each.name: _segment(each, answer.values[each.name], server) for each in form.fields}
    own = {ACTION: answer.button, CONTENT: filled_content(form, answer.values)}
    return Completed(answer.button, values, {**values, **{name: build_segment(value) for name, value in own.items()}})


def _segment(asked: FormField, value: FieldValue, server: FileServer | None) -> Segment:
    if isinstance(value, str):
        return build_segment(value)
    files = all_uploaded(value, server)
    return build_segment(files.value[0]) if asked.kind == "file" else files

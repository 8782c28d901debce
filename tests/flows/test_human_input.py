"""A form pauses the flow, which is written down, read again, and goes on with the person's answer."""

import time
from dataclasses import replace
from pathlib import Path

from graphon.engine_events.graph import GraphRunPausedEvent, GraphRunSucceededEvent

from devhost.flow.document import FlowFile
from devhost.flow.engine.play import EngineRun, play
from devhost.flow.engine.turn import RunningTurn
from devhost.flow.traces import FlowTrace, facts_of
from devhost.flow.turn import FlowTurn
from devhost.recording.case import recorded_case
from devhost.recording.turns import KeptFiles
from devhost.script import Ask, FormAnswer
from devhost.trace import flow
from devhost.trace.lines import read_trace
from support.flow_documents import START, Edge, answer, chatflow, iteration, node
from support.tracing import tracing
from tests.flows.playing import Played, surroundings

BUTTONS = [{"id": "ok", "title": "Approve"}, {"id": "no", "title": "Reject", "button_style": "default"}]
FORM = node(
    "human-input",
    "form",
    form_content="Send {{#sys.query#}}?\n\n{{#$output.reason#}}",
    inputs=[
        {
            "type": "paragraph",
            "output_variable_name": "reason",
            "default": {"type": "variable", "selector": ["sys", "query"]},
        },
        {
            "type": "select",
            "output_variable_name": "when",
            "option_source": {"type": "constant", "value": ["now", "later"]},
        },
    ],
    user_actions=BUTTONS,
    timeout=24,
    timeout_unit="hour",
)
EDGES: list[Edge] = [
    ("start", "early"),
    ("early", "form"),
    ("form", "sent", "ok"),
    ("form", "kept", "no"),
    ("form", "late", flow.TIMEOUT),
]
NODES = [
    START,
    answer("One moment. ", "early"),
    FORM,
    answer("{{#form.__action_id#}} {{#form.when#}}: {{#form.__rendered_content#}}", "sent"),
    answer("No: {{#form.reason#}}", "kept"),
    answer("Too late.{{#form.__action_id#}}", "late"),
]


SENT = FormAnswer("ok", {"reason": "it is right", "when": "now"}, "terminal")


def played(file: Path, ask: Ask) -> list[flow.FlowEvent]:
    turn = FlowTurn("it", conversation_id="c1")
    return list(play(FlowFile.read(file), turn, replace(surroundings(None, {}), ask=ask)))


def test_the_flow_goes_on_behind_the_button_with_what_came_before_the_pause(tmp_path: Path) -> None:
    waited = 0.02

    def ask(_form: flow.FormAsked, _given: FormAnswer) -> FormAnswer:
        time.sleep(waited)
        return SENT

    end = Played(tuple(played(chatflow(tmp_path, NODES, EDGES), ask)))

    (form,) = [event for event in end.events if isinstance(event, flow.FormAsked)]
    assert form.content == "Send it?\n\n{{#$output.reason#}}"
    assert form.fields == (
        flow.AskedField("reason", "paragraph", "it"),
        flow.AskedField("when", "select", options=("now", "later")),
    )
    assert [button.id for button in form.buttons] == ["ok", "no", flow.TIMEOUT]
    answered = [event for event in end.events if isinstance(event, flow.FormAnswered)]
    assert answered == [flow.FormAnswered(form.form, "ok", SENT.values, "terminal")]
    assert end.node("form").seconds >= waited, "the node waits as long as the person thinks"
    assert end.node("form").outputs == {
        "reason": "it is right",
        "when": "now",
        "__action_id": "ok",
        "__rendered_content": "Send it?\n\nit is right",
    }
    assert end.end.outputs["answer"] == "One moment. ok now: Send it?\n\nit is right"
    assert (
        "".join(event.text for event in end.events if isinstance(event, flow.AnswerText)) == end.end.outputs["answer"]
    )
    assert [each.node.id for each in end.nodes] == ["start", "early", "form", "sent"]
    started = [event.node.id for event in end.events if isinstance(event, flow.NodeStarted)]
    assert started == ["start", "early", "form", "sent"]


def test_a_paused_flow_needs_nothing_but_what_it_wrote(tmp_path: Path) -> None:
    """The nodes, the graph and the engine of before are gone, as in a Dify that was restarted."""
    around = surroundings(None, {})
    file = FlowFile.read(chatflow(tmp_path, NODES, EDGES))
    before = RunningTurn(file, FlowTurn("it"), around)
    stretch = EngineRun.first(before)
    *_, paused = stretch.events()
    assert isinstance(paused, GraphRunPausedEvent)
    (form,) = before.forms.open(paused)

    written = stretch.written()
    after = RunningTurn(file, FlowTurn("it"), around)
    after.forms.answer(form, FormAnswer("no", {"reason": "wrong", "when": "later"}))
    *_, last = EngineRun.after_pause(after, *written).events()

    assert isinstance(last, GraphRunSucceededEvent)
    assert last.outputs["answer"] == "One moment. No: wrong"


def test_the_timeout_has_a_way_of_its_own(tmp_path: Path) -> None:
    late = Played(tuple(played(chatflow(tmp_path, NODES, EDGES), lambda _, __: FormAnswer(flow.TIMEOUT))))

    assert late.end.outputs["answer"] == "One moment. Too late."
    assert late.node("form").outputs == {"__action_id": ""}


def test_a_form_in_an_iteration_is_asked_for_each_item(tmp_path: Path) -> None:
    form = node("human-input", "form", form_content="{{#each.item#}}?", inputs=[], user_actions=BUTTONS)
    note = node(
        "template-transform",
        "note",
        variables=[
            {"variable": "item", "value_selector": ["each", "item"]},
            {"variable": "action", "value_selector": ["form", "__action_id"]},
        ],
        template="{{ item }} {{ action }}",
    )
    file = chatflow(
        tmp_path,
        [
            START,
            *iteration("each", [form, note], "conversation.items", "note.output"),
            answer("{{#each.output#}}"),
        ],
        [("start", "each"), ("each_start", "form"), ("form", "note", "ok"), ("form", "note", "no"), ("each", "answer")],
        conversation_variables=[{"name": "items", "value_type": "array[string]", "value": ["a", "b"], "id": "1"}],
    )

    events = played(file, lambda form, _: FormAnswer("ok" if form.content == "a?" else "no"))
    trace = tmp_path / "t"

    assert Played(tuple(events)).node("each").outputs["output"] == ["a ok", "b no"]
    with tracing(trace, command="flow") as writer:
        list(FlowTrace(writer).of_turn(facts_of(FlowFile.read(file), FlowTurn("it")), events))
    case = recorded_case(read_trace(trace), trace, KeptFiles(trace, None))
    assert case.lacks == ("other answers to node 'Form' (form): a turn of a script has one for each form",)

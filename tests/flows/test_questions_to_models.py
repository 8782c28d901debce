"""The question classifier and the parameter extractor with devhost's models."""

import json
from pathlib import Path

import pytest

from devhost.flow.checks import check_flow
from devhost.flow.document import FlowFile
from devhost.flow.turn import FlowTurn
from devhost.node.parameters import PastTurn, messages_of
from devhost.protocol.wire import JsonObject
from support.flow_documents import START, answer, chain, chatflow, classifier, extractor
from tests.flows.playing import Played

QUERY = "Three tickets to Bonn, please."
RATE = {"error": {"type": "InvokeRateLimitError", "message": "[models] Rate Limit Error, slow down"}}
EARLIER = messages_of([PastTurn("Where do trains go?", "To Bonn.")])
TURN = FlowTurn(QUERY, conversation_id="c1", history=EARLIER)
MEMORY = {"window": {"enabled": False, "size": 10}}


def sorting(folder: Path, **data: object) -> Path:
    """A question classifier with an answer for each of two classes, and one for its error."""
    nodes = [
        START,
        classifier("sort", "tickets", "complaints", **data),
        answer("Tickets: {{#sort.class_name#}}", "first"),
        answer("Complaints: {{#sort.class_name#}}", "second"),
        answer("{{#sort.error_message#}}", "failed"),
    ]
    edges = [("sort", "first", "1"), ("sort", "second", "2"), ("sort", "failed", "fail-branch")]
    return chatflow(folder, nodes, [*chain("start", "sort"), *edges])


def chosen(number: str) -> JsonObject:
    said = {"keywords": ["x"], "category_id": number, "category_name": "whatever the model says"}
    return {"text": f"```json\n{json.dumps(said)}\n```", "chunk_size": 6}


@pytest.mark.parametrize(
    ("turn", "says"),
    [
        (chosen("1"), "Tickets: tickets"),
        (chosen("2"), "Complaints: complaints"),
        (chosen("9"), "Tickets: tickets"),
        ({**chosen("2"), "thought": "It sounds angry."}, "Complaints: complaints"),
    ],
)
def test_a_question_goes_the_way_of_its_class(tmp_path: Path, turn: JsonObject, says: str) -> None:
    played = Played.of(sorting(tmp_path), TURN, None, {"sort": [turn]})

    assert played.end.outputs["answer"] == says
    assert played.node("sort").outputs["usage"]["total_tokens"] > 0
    assert played.node("sort").inputs["query"] == QUERY


def test_the_start_node_puts_out_the_system_variables(tmp_path: Path) -> None:
    """Dify's editor writes this selector into every new classifier of a chatflow."""
    file = sorting(tmp_path, query_variable_selector=["start", "sys.query"])

    check_flow(FlowFile.read(file), {}, ())

    assert Played.of(file, TURN, None, {"sort": [chosen("1")]}).node("sort").inputs["query"] == QUERY


def test_a_classifier_remembers_only_with_memory(tmp_path: Path) -> None:
    def prompt(**data: object) -> str:
        played = Played.of(sorting(tmp_path, **data), TURN, None, {"sort": [chosen("1")]})
        return json.dumps(played.node("sort").process["prompts"])

    assert "Human: Where do trains go?" in prompt(memory=MEMORY)
    assert "Where do trains go?" not in prompt()


def test_values_come_out_of_a_call_of_the_extractors_tool(tmp_path: Path) -> None:
    nodes = [
        START,
        extractor("order", {"city": "string", "tickets": "number"}),
        answer("{{#order.tickets#}} to {{#order.city#}}"),
    ]
    call = {"id": "c1", "name": "extract_parameters", "arguments": {"city": "Bonn", "tickets": 3}}
    file = chatflow(tmp_path, nodes, chain("start", "order", "answer"))
    played = Played.of(file, TURN, None, {"order": [{"tool_calls": [call]}]})

    order = played.node("order")
    assert played.end.outputs["answer"] == "3 to Bonn"
    assert order.outputs["__usage"]["total_tokens"] == order.metadata["total_tokens"] > 0
    assert order.process["function"]["parameters"]["required"] == ["city", "tickets"]

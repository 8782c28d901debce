"""The question classifier and the parameter extractor with devhost's models."""

import json
from pathlib import Path

import pytest

from devhost.flow.turn import FlowTurn
from devhost.node.parameters import PastTurn, messages_of
from devhost.protocol.wire import JsonObject
from support.flow_documents import START, Edge, answer, chain, chatflow, classifier, extractor
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


def test_a_failed_classifier_takes_its_error_branch(tmp_path: Path) -> None:
    played = Played.of(sorting(tmp_path, error_strategy="fail-branch"), TURN, None, {"sort": [RATE]})

    assert played.node("sort").status == "exception"
    assert played.end.outputs["answer"] == "[models] Rate Limit Error, slow down"


def test_a_classifier_remembers_only_with_memory(tmp_path: Path) -> None:
    def prompt(**data: object) -> str:
        played = Played.of(sorting(tmp_path, **data), TURN, None, {"sort": [chosen("1")]})
        return json.dumps(played.node("sort").process["prompts"])

    assert "Human: Where do trains go?" in prompt(memory=MEMORY)
    assert "Where do trains go?" not in prompt()


def ordering(folder: Path, **data: object) -> Path:
    shown = "{{#order.tickets#}} to {{#order.city#}} ({{#order.__is_success#}}: {{#order.__reason#}})"
    nodes = [
        START,
        extractor("order", {"city": "string", "tickets": "number"}, **data),
        answer(shown),
        answer("{{#order.error_message#}}", "failed"),
    ]
    failing: list[Edge] = [("order", "failed", "fail-branch")] if "error_strategy" in data else []
    return chatflow(folder, nodes, [*chain("start", "order", "answer"), *failing])


def calling(arguments: JsonObject, **turn: object) -> JsonObject:
    call = {"id": "c1", "name": "extract_parameters", "arguments": arguments}
    return {"tool_calls": [call], **turn}


def test_values_come_out_of_a_call_of_the_extractors_tool(tmp_path: Path) -> None:
    played = Played.of(ordering(tmp_path), TURN, None, {"order": [calling({"city": "Bonn", "tickets": 3})]})

    order = played.node("order")
    assert played.end.outputs["answer"] == "3 to Bonn (1: )"
    assert order.outputs["__usage"]["total_tokens"] == order.metadata["total_tokens"] > 0
    assert order.process["function"]["name"] == "extract_parameters"
    assert order.process["function"]["parameters"]["required"] == ["city", "tickets"]


def test_values_come_out_of_a_text_where_the_node_reasons_in_its_prompt(tmp_path: Path) -> None:
    file = ordering(tmp_path, reasoning_mode="prompt")

    played = Played.of(file, TURN, None, {"order": [{"text": 'Sure: {"city": "Bonn", "tickets": 3}'}]})

    assert played.end.outputs["answer"] == "3 to Bonn (1: )"
    assert played.node("order").process["function"] == {}


@pytest.mark.parametrize(
    ("turn", "says"),
    [
        (calling({"city": "Bonn"}), "0 to Bonn (0: Invalid number of parameters)"),
        (calling({"city": "Bonn", "tickets": "three"}), "0 to Bonn (0: Invalid value for parameter tickets"),
        (
            {"text": "Which city?"},
            "0 to  (0: Failed to extract result from function call or text response, using empty result.)",
        ),
    ],
)
def test_missing_values_have_the_defaults_of_their_type(tmp_path: Path, turn: JsonObject, says: str) -> None:
    played = Played.of(ordering(tmp_path), TURN, None, {"order": [turn]})

    assert played.node("order").status == "succeeded"
    assert played.end.outputs["answer"].startswith(says)


def test_a_failed_extractor_takes_its_error_branch(tmp_path: Path) -> None:
    played = Played.of(ordering(tmp_path, error_strategy="fail-branch"), TURN, None, {"order": [RATE]})

    assert played.node("order").status == "exception"
    assert played.end.outputs["answer"] == "[models] Rate Limit Error, slow down"


def test_an_extractor_remembers_only_with_memory(tmp_path: Path) -> None:
    def prompt(**data: object) -> str:
        turns = [calling({"city": "Bonn", "tickets": 3})]
        return json.dumps(Played.of(ordering(tmp_path, **data), TURN, None, {"order": turns}).node("order").process)

    assert "Human: Where do trains go?" in prompt(memory=MEMORY)
    assert "Where do trains go?" not in prompt()

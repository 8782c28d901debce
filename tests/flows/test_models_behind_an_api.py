"""Model nodes with models behind an API: their own names and parameters, streams, schemas, tools and failures."""

import json
from pathlib import Path

import pytest

from devhost.flow.document import FlowFile
from devhost.flow.engine.play import play
from devhost.flow.turn import FlowTurn, TurnContext
from devhost.hosting import ModelOptions, ModelsBehindAnApi
from devhost.models.openai_api.provider import Api
from devhost.trace.flow import AnswerText
from fake_openai import KEY, Call, FakeOpenAI, Turn, rate_limited
from support.flow_documents import MODEL, START, answer, chain, chatflow, extractor, llm
from tests.flows.playing import Played

TURN = FlowTurn("Three tickets to Bonn, please.", conversation_id="c1")
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
CHEAP = {**MODEL, "name": "gpt-4.1", "completion_params": {"temperature": 0.5}}


def played(file: Path, fake: FakeOpenAI, api: Api = "chat", name: str | None = None, *completion: str) -> Played:
    options = ModelOptions(api=api, name=name, completion=completion)
    models = ModelsBehindAnApi(options, {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": fake.base_url})
    return Played(tuple(play(FlowFile.read(file), TURN, TurnContext(None, models))))


def asking(folder: Path, **data: object) -> Path:
    nodes = [START, llm("ask", model=CHEAP, **data), answer("{{#ask.text#}}")]
    return chatflow(folder, nodes, chain("start", "ask", "answer"))


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_a_node_asks_its_own_model_with_its_own_parameters(tmp_path: Path, fake: FakeOpenAI, api: Api) -> None:
    fake.will(Turn(text="Three tickets to Bonn are 90 euros."))

    run = played(asking(tmp_path), fake, api)

    ((_, sent),) = fake.requests
    assert (sent["model"], sent["temperature"]) == ("gpt-4.1", 0.5)
    assert run.end.outputs["answer"] == "Three tickets to Bonn are 90 euros."
    assert len([event for event in run.events if isinstance(event, AnswerText)]) > 1
    ask = run.node("ask")
    assert ask.inputs["model_name"] == "gpt-4.1"
    assert ask.metadata["total_tokens"] == 120
    assert ask.metadata["total_price"] > 0


def test_options_of_the_command_go_before_the_file(tmp_path: Path, fake: FakeOpenAI) -> None:
    fake.will(Turn(text="Yes."))

    run = played(asking(tmp_path), fake, "chat", "gpt-5", "reasoning_effort=low")

    ((_, sent),) = fake.requests
    assert (sent["model"], sent["reasoning_effort"]) == ("gpt-5", "low")
    assert run.node("ask").inputs["model_name"] == "gpt-5"


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_an_extractor_calls_its_tool(tmp_path: Path, fake: FakeOpenAI, api: Api) -> None:
    fake.will(Turn(calls=(Call("extract_parameters", {"city": "Bonn", "tickets": 3}),)))
    nodes = [
        START,
        extractor("order", {"city": "string", "tickets": "number"}, model=CHEAP),
        answer("{{#order.city#}}"),
    ]

    run = played(chatflow(tmp_path, nodes, chain("start", "order", "answer")), fake, api)

    assert "extract_parameters" in json.dumps(fake.requests[0][1]["tools"])
    order = run.node("order")
    assert (order.outputs["city"], order.outputs["tickets"], order.outputs["__is_success"]) == ("Bonn", 3, 1)


def test_a_refused_request_fails_the_node_in_the_plugins_words_without_the_key(
    tmp_path: Path, fake: FakeOpenAI
) -> None:
    fake.will(rate_limited())

    run = played(asking(tmp_path), fake)

    assert run.node("ask").status == "failed"
    assert run.end.error.startswith("[models] Rate Limit Error, ")
    assert KEY not in repr(run.events)

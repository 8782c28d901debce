"""The LLM node with devhost's models: answers, failures, memory and structured output."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devhost.errors import ParameterError
from devhost.files import LocalFile
from devhost.flow.document import FlowFile
from devhost.flow.engine.play import play
from devhost.flow.turn import FlowTurn, TurnContext
from devhost.host.host import start_tools
from devhost.limits import HostLimits
from devhost.models.backend import MediaPart, ModelDescription, ModelRequest, TextPart
from devhost.models.scripted.model import ScriptedModel
from devhost.node.parameters import PastTurn, messages_of
from devhost.protocol.wire import JsonObject
from devhost.trace.flow import AnswerText
from support.flow_documents import MODEL, START, answer, chain, chatflow, end, iteration, llm, start, workflow
from tests.flows.playing import Played

TURN = FlowTurn("What is there?", conversation_id="c1")
RATE = {"error": {"type": "InvokeRateLimitError", "message": "[models] Rate Limit Error, slow down"}}


def asking(folder: Path, **data: object) -> Path:
    """Start, the LLM node `ask`, its text as the answer."""
    return chatflow(folder, [START, llm("ask", **data), answer("{{#ask.text#}}")], chain("start", "ask", "answer"))


def test_an_answer_streams_through_the_answer_node_and_its_usage_is_the_nodes(tmp_path: Path) -> None:
    words = "Two documents, and both are short."
    turn = {"text": words, "chunk_size": 5, "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_price": "0.5"}}
    played = Played.of(asking(tmp_path), TURN, None, {"ask": [turn]})

    texts = [event.text for event in played.events if isinstance(event, AnswerText)]
    assert "".join(texts) == words
    assert len(texts) > 1
    asked = played.node("ask")
    assert asked.outputs["text"] == words
    assert asked.outputs["finish_reason"] == "stop"
    assert asked.outputs["usage"]["total_tokens"] == 10
    assert asked.metadata == {"total_tokens": 10, "total_price": 0.5, "currency": "USD"}
    assert asked.inputs["model_provider"] == MODEL["provider"]
    assert asked.inputs["model_name"] == "gpt-5"
    assert asked.process["prompts"] == [{"role": "user", "text": "What is there?"}]


def test_the_model_gets_the_nodes_name_and_parameters(tmp_path: Path) -> None:
    model = ScriptedModel.of([{"text": "Two."}])
    params = {"temperature": 0.5, "max_tokens": "{{#sys.dialogue_count#}}", "stop": ["END"]}
    file = asking(tmp_path, model={**MODEL, "name": "gpt-5-mini", "completion_params": params})

    list(play(FlowFile.read(file), TURN, TurnContext(None, lambda _node: model)))

    (request,) = model.requests
    assert (request.provider, request.model, request.mode) == (MODEL["provider"], "gpt-5-mini", "chat")
    assert request.completion_params == {"temperature": 0.5, "max_tokens": 1}
    assert request.stop == ("END",)
    assert request.stream


@pytest.mark.parametrize(
    ("turn", "shows", "kind"),
    [
        (RATE, "[models] Rate Limit Error, slow down", "InvokeRateLimitError"),
        (
            {"error": {"type": "InvokeError", "message": "no"}},
            "no",
            "InvokeError",
        ),
        (
            {"api_fails": "http_500"},
            "request failed with status code: 500 and respond with: ",
            "InvokeError",
        ),
    ],
)
def test_a_providers_error_takes_the_error_branch_in_its_own_words(
    tmp_path: Path, turn: JsonObject, shows: str, kind: str
) -> None:
    nodes = [
        START,
        llm("ask", error_strategy="fail-branch"),
        answer("{{#ask.text#}}"),
        answer("{{#ask.error_type#}}: {{#ask.error_message#}}", "failed"),
    ]
    file = chatflow(tmp_path, nodes, [*chain("start", "ask", "answer"), ("ask", "failed", "fail-branch")])

    played = Played.of(file, TURN, None, {"ask": [turn]})

    assert played.node("ask").status == "exception"
    assert played.end.status == "partial-succeeded"
    assert played.end.outputs["answer"] == f"{kind}: {shows}"


def test_a_retry_asks_the_model_once_more(tmp_path: Path) -> None:
    retry = {"retry_enabled": True, "max_retries": 2, "retry_interval": 1}
    played = Played.of(asking(tmp_path, retry_config=retry), TURN, None, {"ask": [RATE, {"text": "Two."}]})

    assert played.node("ask").retries == ("[models] Rate Limit Error, slow down",)
    assert played.end.outputs["answer"] == "Two."


def test_a_node_without_turns_ends_the_flow_even_in_an_iteration_that_goes_on_after_errors(tmp_path: Path) -> None:
    inside = [llm("ask", ("user", "{{#each.item#}}"), error_strategy="fail-branch")]
    nodes = [
        start("words"),
        *iteration("each", inside, "start.words", "ask.text", error_handle_mode="continue-on-error", is_parallel=True),
        end(said="each.output"),
    ]
    file = workflow(tmp_path, nodes, [*chain("start", "each", "end"), ("each_start", "ask")])

    with pytest.raises(ParameterError, match=r"the script has no turns for node 'Ask' \(ask\)"):
        Played.of(file, FlowTurn(inputs={"words": ["a", "b", "c"]}), None, {"other": [{"text": "x"}]})


def test_a_mistake_in_a_backend_is_raised(tmp_path: Path) -> None:
    class Broken:
        description = ModelDescription("p", "m", "", scripted=True)

        def invoke(self, request: ModelRequest, /) -> Iterator[JsonObject]:
            raise RuntimeError(f"no such tape: {request.model}")

    file = asking(tmp_path, error_strategy="fail-branch")

    with pytest.raises(RuntimeError, match="no such tape: gpt-5"):
        list(play(FlowFile.read(file), TURN, TurnContext(None, lambda _node: Broken())))


def past() -> list[JsonObject]:
    return messages_of([PastTurn("What came in?", "Two letters."), PastTurn("From whom?", "Ada.")])


@pytest.mark.parametrize(
    ("window", "remembered"),
    [
        ({"enabled": False, "size": 1}, ["What came in?", "Two letters.", "From whom?", "Ada."]),
        ({"enabled": True, "size": 1}, ["From whom?", "Ada."]),
    ],
)
def test_memory_stands_between_the_prompt_and_the_query(
    tmp_path: Path, window: JsonObject, remembered: list[str]
) -> None:
    memory = {"window": window, "query_prompt_template": "{{#sys.query#}}"}
    nodes = [START, llm("ask", ("system", "Be short."), memory=memory), answer("{{#ask.text#}}")]
    file = chatflow(tmp_path, nodes, chain("start", "ask", "answer"))

    played = Played.of(
        file, FlowTurn("And when?", conversation_id="c1", history=past()), None, {"ask": [{"text": "x"}]}
    )

    prompts = played.node("ask").process["prompts"]
    assert [prompt["text"] for prompt in prompts] == ["Be short.", *remembered, "And when?"]
    assert [prompt["role"] for prompt in prompts[-3:]] == ["user", "assistant", "user"]


SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "people": {"type": "number"}},
    "required": ["city"],
}


def structured(folder: Path, text: str, **data: Any) -> Played:  # noqa: ANN401
    file = asking(folder, structured_output_enabled=True, structured_output={"schema": SCHEMA}, **data)
    return Played.of(file, TURN, None, {"ask": [{"text": text, "chunk_size": 4}]})


@pytest.mark.parametrize(
    "text",
    [
        '{"city": "Bonn", "people": 3}',
        'Here it is:\n```json\n{"city": "Bonn", "people": 3,}\n```',
        '<think>\n{"city": "Rome"}?\n</think>\n{"city": "Bonn", "people": 3}',
    ],
)
def test_structured_output_is_the_object_that_the_model_wrote(tmp_path: Path, text: str) -> None:
    played = structured(tmp_path, text)

    assert played.end.status == "succeeded"
    assert played.node("ask").outputs["structured_output"] == {"city": "Bonn", "people": 3}
    assert played.node("ask").outputs["text"] == text


@pytest.mark.parametrize(
    ("text", "shows"),
    [
        ("I do not know.", "Failed to parse structured output (stage=result, path=$): the answer is not a JSON object"),
        ('{"people": 3}', "Structured output validation failed (stage=result, path=$): 'city' is a required property"),
    ],
)
def test_an_answer_outside_the_schema_fails_the_node(tmp_path: Path, text: str, shows: str) -> None:
    played = structured(tmp_path, text)

    assert played.end.status == "failed"
    assert played.node("ask").error.startswith(shows)


def test_a_real_model_is_asked_for_the_schema(tmp_path: Path) -> None:
    model = ScriptedModel.of([{"text": '{"city": "Bonn"}'}])
    file = asking(tmp_path, structured_output_enabled=True, structured_output={"schema": SCHEMA})

    list(play(FlowFile.read(file), TURN, TurnContext(None, lambda _node: model)))

    params = model.requests[0].completion_params
    assert params["response_format"] == "json_schema"
    assert '"name": "llm_response"' in params["json_schema"]
    assert '"required": ["city"]' in params["json_schema"]


def test_a_prompt_may_be_a_jinja_template_and_gets_no_further_than_its_variables(tmp_path: Path) -> None:
    def prompted(template: str) -> JsonObject:
        message = {"role": "user", "text": "", "edition_type": "jinja2", "jinja2_text": template}
        variables = [{"variable": "who", "value_selector": ["sys", "query"]}]
        return llm("ask", prompt_template=[message], prompt_config={"jinja2_variables": variables})

    def play_with(template: str) -> Played:
        nodes = [START, prompted(template), answer("{{#ask.text#}}")]
        return Played.of(
            chatflow(tmp_path, nodes, chain("start", "ask", "answer")), TURN, None, {"ask": [{"text": "x"}]}
        )

    assert play_with("Tell {{ who | upper }}").node("ask").process["prompts"][0]["text"] == "Tell WHAT IS THERE?"
    assert "unsafe" in play_with("{{ who.__class__.__mro__ }}").node("ask").error


def test_files_reach_the_model_as_far_as_its_features_go(tmp_path: Path) -> None:
    (tmp_path / "stamp.png").write_bytes(b"a picture")
    (tmp_path / "letter.pdf").write_bytes(b"a document")
    files = [LocalFile.read(tmp_path / name, HostLimits()) for name in ("stamp.png", "letter.pdf")]
    vision = {"enabled": True, "configs": {"detail": "low", "variable_selector": ["sys", "files"]}}
    model = ScriptedModel.of([{"text": "A stamp."}])

    with start_tools((), limits=HostLimits()) as host:
        around = TurnContext(host, lambda _node: model)
        turn = FlowTurn("What is it?", files=files, conversation_id="c1")
        run = Played(tuple(play(FlowFile.read(asking(tmp_path, vision=vision)), turn, around)))

    assert run.end.outputs["answer"] == "A stamp."
    content = model.requests[0].prompt_messages[-1].content
    assert isinstance(content, tuple)
    picture, words = content
    assert isinstance(picture, MediaPart)
    assert isinstance(words, TextPart)
    assert (picture.type, picture.mime_type, picture.detail) == ("image", "image/png", "low")
    assert base64.b64decode(picture.base64_data) == b"a picture"
    assert words.data == "What is it?"

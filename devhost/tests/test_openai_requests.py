"""Dify's prompts as input items of the Responses API and as messages of Chat Completions."""

from typing import Any

import pytest

from devhost.models.backend import ModelCallError
from devhost.models.openai_api.provider import chat_request, input_items, responses_request
from support.openai_requests import LETTER, PICTURE, SEARCH, call, model_request, result

FAR_LETTER = {**LETTER, "base64_data": "", "url": "https://x.example/b"}
SOUND = {"type": "audio", "format": "wav", "mime_type": "audio/wav", "base64_data": "c291bmQ="}
CONVERSATION = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "data": "What is this?"}, {**PICTURE, "detail": "low"}, LETTER]},
    {
        "role": "assistant",
        "content": "<think>\nA map?\n</think>\nI'll look.",
        "tool_calls": [call("c1", "a"), call("c2", "b")],
    },
    result("c1", "found a"),
    result("c2", [{"type": "text", "data": "found b"}]),
    {"role": "assistant", "content": "", "tool_calls": [call("c3", "c")]},
    result("c3", ""),
    {"role": "user", "content": "And?"},
]


def plain(value: object) -> Any:  # noqa: ANN401 - typed dicts as the JSON they are
    return value


def sent(request: dict[str, Any]) -> dict[str, Any]:
    """As the client sends it."""
    extra = request.pop("extra_body")
    return {**request, **extra}


def test_a_conversation_for_the_responses_api() -> None:
    assert plain(responses_request(model_request(CONVERSATION), {})["input"]) == [
        {"type": "message", "role": "system", "content": "Be brief."},
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "What is this?"},
                {"type": "input_image", "image_url": "data:image/png;base64,cGljdHVyZQ==", "detail": "low"},
                {"type": "input_file", "filename": "letter.pdf", "file_data": "data:application/pdf;base64,bGV0dGVy"},
            ],
        },
        {"type": "message", "role": "assistant", "content": "I'll look."},
        {"type": "function_call", "call_id": "c1", "name": "search", "arguments": '{"q": "a"}'},
        {"type": "function_call", "call_id": "c2", "name": "search", "arguments": '{"q": "b"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "found a"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "found b"}]},
        {"type": "function_call", "call_id": "c3", "name": "search", "arguments": '{"q": "c"}'},
        {"type": "function_call_output", "call_id": "c3", "output": ""},
        {"type": "message", "role": "user", "content": "And?"},
    ]


def test_a_conversation_for_chat_completions() -> None:
    assert plain(chat_request(model_request(CONVERSATION), {})["messages"]) == [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,cGljdHVyZQ==", "detail": "low"}},
                {
                    "type": "file",
                    "file": {"filename": "letter.pdf", "file_data": "data:application/pdf;base64,bGV0dGVy"},
                },
            ],
        },
        {"role": "assistant", "content": "I'll look.", "tool_calls": [call("c1", "a"), call("c2", "b")]},
        {"role": "tool", "tool_call_id": "c1", "content": "found a"},
        {"role": "tool", "tool_call_id": "c2", "content": "found b"},
        {"role": "assistant", "content": "", "tool_calls": [call("c3", "c")]},
        {"role": "tool", "tool_call_id": "c3", "content": ""},
        {"role": "user", "content": "And?"},
    ]


def test_items_of_an_earlier_response_go_back_as_they_were() -> None:
    items = [{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "xyz", "new": {"key": [1]}}]
    opaque = {"role": "assistant", "content": "ignored", "tool_calls": [call("c1", "a")]}
    request = model_request([{**opaque, "opaque_body": {"responses_output": items}}])

    assert plain(list(input_items(request.prompt_messages[0]))) == items
    # The body of another provider is not sent: the message itself is.
    other = model_request([{**opaque, "opaque_body": {"anthropic_content": items}}])
    assert [item["type"] for item in plain(list(input_items(other.prompt_messages[0])))] == ["message", "function_call"]


def test_what_is_fixed_in_a_request_to_the_responses_api() -> None:
    request = sent(responses_request(model_request(tools=[SEARCH]), {}))

    assert request.pop("input")
    assert request == {
        "model": "gpt-5",
        "store": False,
        "stream": True,
        "include": ["reasoning.encrypted_content"],
        "tools": [{"type": "function", **SEARCH, "strict": False}],
        "tool_choice": "auto",
    }
    assert "include" not in responses_request(model_request(model="gpt-4.1"), {})


def test_parameters_for_the_responses_api() -> None:
    params = {
        "max_tokens": 500,
        "reasoning_effort": "low",
        "reasoning_summary": "auto",
        "verbosity": "low",
        "service_tier": "flex",
        "response_format": "json_schema",
        "json_schema": '{"name": "answer", "schema": {"type": "object"}, "strict": true}',
    }
    request = sent(responses_request(model_request(), params))

    assert request["max_output_tokens"] == 500
    assert request["reasoning"] == {"effort": "low", "summary": "auto"}
    assert request["service_tier"] == "flex"
    schema = {"type": "json_schema", "name": "answer", "schema": {"type": "object"}, "strict": True}
    assert request["text"] == {"verbosity": "low", "format": schema}


def test_parameters_for_chat_completions() -> None:
    params = {"max_tokens": 500, "reasoning_effort": "low", "response_format": "json_object", "of_the_server": 1}
    request = sent(chat_request(model_request(tools=[SEARCH]), params))

    assert request.pop("messages")
    assert request == {
        "model": "gpt-5",
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [{"type": "function", "function": SEARCH}],
        "max_completion_tokens": 500,
        "reasoning_effort": "low",
        "response_format": {"type": "json_object"},
        "of_the_server": 1,
    }
    other = model_request(model="llama3.2", stop=["END"])
    settings = {
        "max_tokens": 9,
        "temperature": 0,
        "json_schema": {"type": "object"},
        "response_format": "json_schema",
    }
    request = sent(chat_request(other, settings))
    assert (request["max_tokens"], request["temperature"], request["stop"]) == (9, 0, ["END"])
    assert request["response_format"]["json_schema"] == {"name": "answer", "schema": {"type": "object"}}


@pytest.mark.parametrize(
    ("model", "name"),
    [
        *((model, "max_completion_tokens") for model in ("gpt-4.1", "o3", "openai/gpt-5-mini")),
        *((model, "max_tokens") for model in ("gpt-oss:20b", "o-llama")),
    ],
)
def test_what_the_limit_of_tokens_is_called(model: str, name: str) -> None:
    assert name in sent(chat_request(model_request(model=model), {"max_tokens": 1}))


@pytest.mark.parametrize(
    ("asked", "params", "words"),
    [
        (chat_request, {"messages": [{"role": "user", "content": [{**PICTURE, "type": "video"}]}]}, "takes no video"),
        (chat_request, {"messages": [{"role": "user", "content": [FAR_LETTER]}]}, "takes no document by its URL"),
        (chat_request, {"messages": [result("c1", [PICTURE])]}, "only text as a tool's result"),
        (responses_request, {"messages": [{"role": "user", "content": [SOUND]}]}, "takes no audio"),
        (responses_request, {"stop": ["END"]}, "no stop words"),
        (responses_request, {"response_format": "json_schema", "json_schema": "{"}, "not valid JSON"),
    ],
)
def test_requests_that_an_api_cannot_express(asked: Any, params: dict[str, Any], words: str) -> None:  # noqa: ANN401
    request = model_request(**params)
    with pytest.raises(ModelCallError, match=words) as raised:
        asked(request, request.completion_params)
    assert raised.value.error_type == "InvokeBadRequestError"


def test_media_by_address() -> None:
    parts = [{**PICTURE, "base64_data": "", "url": "https://x.example/a.png"}, FAR_LETTER]
    request = responses_request(model_request([{"role": "user", "content": parts}]), {})
    assert plain(request["input"])[0]["content"] == [
        {"type": "input_image", "image_url": "https://x.example/a.png", "detail": "auto"},
        {"type": "input_file", "file_url": "https://x.example/b"},
    ]
    request = chat_request(model_request([{"role": "user", "content": [SOUND]}]), {})
    assert plain(request["messages"])[0]["content"][0]["input_audio"] == {"data": "c291bmQ=", "format": "wav"}

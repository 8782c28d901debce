"""The fake refuses what the real API refuses, in its words."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import httpx
import pytest

from fake_openai import KEY, FakeOpenAI, Turn

TOOL_CALL = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
CALL = {"type": "function_call", "call_id": "c1", "name": "search", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "found"}
ASKS = {"role": "user", "content": "Hi"}
CALLS = {"role": "assistant", "content": "", "tool_calls": [TOOL_CALL]}
ANSWERS = {"role": "tool", "tool_call_id": "c1", "content": "found"}
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}
TOOL = {"type": "function", "name": "search", "parameters": SCHEMA, "strict": False}
RESPONSES = {"model": "gpt-5", "input": [ASKS, CALL, OUTPUT], "tools": [TOOL], "stream": True, "store": False}
CHAT = {
    "model": "gpt-5",
    "messages": [ASKS, CALLS, ANSWERS],
    "tools": [{"type": "function", "function": {"name": "search", "parameters": SCHEMA}}],
    "stream": True,
}


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as fake:
        yield fake


def post(fake: FakeOpenAI, path: str, body: object, key: str = KEY) -> httpx.Response:
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.post(f"{fake.base_url}/{path}", json=body, headers=headers, trust_env=False, timeout=300)


def changed(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """With other values at places such as `tools.0.name`; None takes the key away."""
    body = deepcopy(base)
    for place, value in changes.items():
        *path, last = place.split(".")
        node: Any = body
        for part in path:
            node = node[int(part)] if isinstance(node, list) else node[part]
        key: Any = int(last) if isinstance(node, list) else last
        if value is None:
            del node[key]
        else:
            node[key] = value
    return body


@pytest.mark.parametrize(("path", "body"), [("responses", RESPONSES), ("chat/completions", CHAT)])
def test_valid_requests_are_answered(fake: FakeOpenAI, path: str, body: object) -> None:
    fake.will(Turn(text="Hello"))
    answer = post(fake, path, body)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    assert "Hello" in answer.text


def refused(answer: httpx.Response, words: str) -> bool:
    """With a body of the real one's form."""
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["type"] == "invalid_request_error"
    assert words in error["message"]
    return True


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"input": [ASKS, CALL]}, "No tool output found for function call c1"),
        ({"input": [ASKS, OUTPUT]}, "No tool call found for function call output with call_id c1"),
        ({"input": [ASKS, OUTPUT, CALL]}, "No tool call found"),
        ({"input": [ASKS, CALL, CALL, OUTPUT]}, "Duplicate function call"),
        ({"input": [ASKS, CALL, OUTPUT, OUTPUT]}, "Duplicate output"),
        ({"input.1.arguments": "[1]"}, "Invalid 'input[1].arguments': expected a JSON object"),
        ({"input.1.arguments": '{"q'}, "Invalid 'input[1].arguments': not valid JSON"),
        ({"input.1.arguments": {"q": 1}}, "Invalid type for 'input[1].arguments'"),
        ({"input.1.name": "no good"}, "Invalid 'input[1].name': string does not match pattern"),
        ({"input.1.type": None}, "Missing required parameter: 'input[1].type'"),
        ({"input.1.type": "tool_call"}, "Invalid value: 'tool_call'"),
        ({"input.0.role": "tool"}, "Invalid value: 'tool'"),
        ({"input.0.name": "me"}, "Unknown parameter: 'input[0].name'"),
        ({"input.0.content": [{"type": "text", "text": "Hi"}]}, "Invalid value: 'text'"),
        ({"input.0.content": [{"type": "output_text", "text": "Hi"}]}, "Invalid value: 'output_text'"),
        ({"input.0.content": [{"type": "input_image", "image_url": "nowhere"}]}, "input[0].content[0].image_url"),
        ({"temperature": 0.2}, "Unsupported parameter: 'temperature'"),
        ({"max_tokens": 100}, "Unknown parameter: 'max_tokens'"),
        ({"max_completion_tokens": 100}, "Unknown parameter: 'max_completion_tokens'"),
        ({"reasoning": {"effort": "none"}}, "Unsupported value: 'none'"),
        ({"model": "gpt-4.1", "include": ["reasoning.encrypted_content"]}, "Encrypted content is not supported"),
        ({"model": "gpt-4.1", "reasoning": {"effort": "low"}}, "Unsupported parameter: 'reasoning.effort'"),
        ({"tools.0.type": None}, "Missing required parameter: 'tools[0].type'"),
        ({"tools.0.strict": None}, "Missing required parameter: 'tools[0].strict'"),
        ({"tools.0.name": "böse"}, "Invalid 'tools[0].name': string does not match pattern"),
        ({"tools.0.name": "x" * 65}, "Invalid 'tools[0].name': string too long"),
        ({"tools.0.parameters": {"type": "string"}}, "got 'type: \"string\"'"),
        (
            {"tools.0.parameters": {"type": "object", "properties": {"q": {"type": "text"}}}},
            "Invalid schema for function",
        ),
        ({"tools.0.parameters": {"type": "object", "properties": {"q": {"enum": "a"}}}}, "Invalid schema for function"),
        ({"tools.0.function": {"name": "search"}}, "Unknown parameter: 'tools[0].function'"),
        ({"stream": False}, "Invalid value: 'False'"),
    ],
)
def test_refusals_of_the_responses_api(fake: FakeOpenAI, changes: dict[str, Any], words: str) -> None:
    assert refused(post(fake, "responses", changed(RESPONSES, changes)), words)


def test_reasoning_comes_back_sealed_and_in_its_place(fake: FakeOpenAI) -> None:
    fake.will(Turn(text="Hello", summary="Greet."))
    post(fake, "responses", {**RESPONSES, "include": ["reasoning.encrypted_content"]})
    reasoning, message = fake.issued[-1]

    def send(*items: object) -> httpx.Response:
        return post(fake, "responses", {**RESPONSES, "input": [ASKS, *items]})

    assert refused(send(message), "without its required 'reasoning' item")
    assert refused(send(reasoning), "without its required following item")
    assert refused(send({**reasoning, "encrypted_content": "other"}, message), "could not be verified")
    assert send({**reasoning, "encrypted_content": None}, message).status_code == 404
    fake.will(Turn(text="Again"))
    assert send(reasoning, message).status_code == 200


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"messages": [ASKS, ANSWERS]}, "must be a response to a preceding message with 'tool_calls'"),
        ({"messages": [ASKS, CALLS]}, "did not have response messages: c1"),
        ({"messages": [ASKS, CALLS, ASKS, ANSWERS]}, "did not have response messages: c1"),
        ({"messages.1.tool_calls": [TOOL_CALL, TOOL_CALL]}, "Duplicate value for 'tool_call_id'"),
        ({"messages.1.tool_calls.0.function.arguments": "7"}, "expected a JSON object"),
        ({"messages.1.tool_calls.0.function.arguments": "{"}, "not valid JSON"),
        ({"messages.1.tool_calls.0.type": None}, "Missing required parameter: 'messages[1].tool_calls[0].type'"),
        ({"messages.1.tool_calls": []}, "messages[1].tool_calls"),
        ({"messages.0.role": "function"}, "Invalid value: 'function'"),
        ({"messages.0.role": None}, "Missing required parameter: 'messages[0].role'"),
        ({"model": "llama3.2", "messages.0.role": "developer"}, "Unexpected role: developer"),
        (
            {"messages.2.content": [{"type": "image_url", "image_url": {"url": "https://x.example"}}]},
            "Invalid value: 'image_url'",
        ),
        ({"max_tokens": 100}, "Use 'max_completion_tokens' instead"),
        ({"temperature": 0.2}, "'temperature' does not support 0.2"),
        ({"reasoning_effort": "extreme"}, "does not support 'extreme'"),
        ({"model": "gpt-4.1", "reasoning_effort": "low"}, "Unrecognized request argument"),
        (
            {"model": "gpt-5.6-terra", "reasoning_effort": "low"},
            "Function tools with reasoning_effort are not supported",
        ),
        ({"store_it": True}, "Unknown parameter: 'store_it'"),
        ({"tools.0.type": None}, "Missing required parameter: 'tools[0].type'"),
        ({"tools.0.function.name": "a.b"}, "Invalid 'tools[0].function.name'"),
        ({"tools.0.function.parameters": {"type": "object", "properties": []}}, "Invalid schema for function"),
        ({"tools": []}, "tools"),
    ],
)
def test_refusals_of_chat_completions(fake: FakeOpenAI, changes: dict[str, Any], words: str) -> None:
    assert refused(post(fake, "chat/completions", changed(CHAT, changes)), words)


@pytest.mark.parametrize(
    ("path", "body", "key", "status", "code"),
    [
        ("responses", RESPONSES, "sk-other", 401, "invalid_api_key"),
        ("responses", {**RESPONSES, "model": "gpt-99"}, KEY, 404, "model_not_found"),
        ("completions", CHAT, KEY, 404, "unknown_url"),
        ("responses", [], KEY, 400, None),
    ],
)
def test_requests_that_both_apis_refuse(  # noqa: PLR0917 - one column each
    fake: FakeOpenAI, path: str, body: object, key: str, status: int, code: str | None
) -> None:
    answer = post(fake, path, body, key)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


def test_a_developer_message_belongs_to_openais_models(fake: FakeOpenAI) -> None:
    fake.will(Turn(text="Yes"))
    assert post(fake, "chat/completions", changed(CHAT, {"messages.0.role": "developer"})).status_code == 200

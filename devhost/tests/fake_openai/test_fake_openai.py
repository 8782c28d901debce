"""The fake refuses what the real API refuses."""

from copy import deepcopy
from typing import Any

import pytest

from fake_openai.rules import Refusal, check_chat, check_responses

CALL = {"type": "function_call", "call_id": "c1", "name": "search", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "found"}
ASKS = {"role": "user", "content": "Hi"}
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}
TOOL = {"type": "function", "name": "search", "parameters": SCHEMA, "strict": False}
RESPONSES = {"model": "gpt-5", "input": [ASKS, CALL, OUTPUT], "tools": [TOOL], "stream": True, "store": False}
TOOL_CALL = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
CALLS, ANSWERS = {"role": "assistant", "tool_calls": [TOOL_CALL]}, {"role": "tool", "tool_call_id": "c1", "content": ""}
CHAT_TOOL = {"type": "function", "function": {"name": "search", "parameters": SCHEMA}}
CHAT = {"model": "gpt-5", "messages": [ASKS, CALLS, ANSWERS], "tools": [CHAT_TOOL], "stream": True}


def changed(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """With other values at places such as `tools.0.name`."""
    body = deepcopy(base)
    for place, value in changes.items():
        *path, last = place.split(".")
        node: Any = body
        for part in path:
            node = node[int(part)] if isinstance(node, list) else node[part]
        node[last] = value
    return body


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"input": [ASKS, CALL]}, "No tool output found for function call c1"),
        ({"input": [ASKS, OUTPUT, CALL]}, "No tool call found for function call output with call_id c1"),
        ({"input.1.arguments": "[1]"}, "expected a JSON object"),
        ({"input.1.arguments": {"q": 1}}, "arguments"),
        ({"input.1.name": "no good"}, "does not match pattern"),
        ({"input.0.content": [{"type": "text", "text": "Hi"}]}, "content"),
        ({"temperature": 0.2}, "Unsupported parameter: 'temperature'"),
        ({"max_tokens": 100}, "max_tokens"),
        ({"reasoning": {"effort": "none"}}, "Unsupported value: 'none'"),
        ({"model": "gpt-4.1", "include": ["reasoning.encrypted_content"]}, "Encrypted content is not supported"),
        ({"model": "gpt-4.1", "reasoning": {"effort": "low"}}, "Unsupported value: 'low'"),
        ({"model": "gpt-99"}, "does not exist"),
        ({"tools.0.name": "x" * 65}, "does not match pattern"),
        ({"tools.0.parameters": {"type": "object", "properties": {"q": {"type": "text"}}}}, "Invalid schema"),
        ({"stream": False}, "stream"),
    ],
)
def test_refusals_of_the_responses_api(changes: dict[str, Any], words: str) -> None:
    check_responses(RESPONSES, [])
    with pytest.raises(Refusal, match=words):
        check_responses(changed(RESPONSES, changes), [])


def test_reasoning_comes_back_sealed_and_in_its_place() -> None:
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"}
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": []}

    def check(*items: object) -> None:
        check_responses({**RESPONSES, "input": [ASKS, *items]}, [[reasoning, message]])

    check(reasoning, message)
    for items, words in [
        ([message], "without its required 'reasoning' item"),
        ([reasoning], "without its required following item"),
        ([{**reasoning, "encrypted_content": "other"}, message], "could not be verified"),
    ]:
        with pytest.raises(Refusal, match=words):
            check(*items)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"messages": [ASKS, ANSWERS]}, "must be a response to a preceding message with 'tool_calls'"),
        ({"messages": [ASKS, CALLS, ASKS, ANSWERS]}, "No tool output found for function call c1"),
        ({"messages.1.tool_calls.0.function.arguments": "{"}, "expected a JSON object"),
        ({"messages.0.role": "function"}, "role"),
        ({"max_tokens": 100}, "'max_tokens' is not supported"),
        ({"reasoning_effort": "xhigh"}, "Unsupported value: 'xhigh'"),
        ({"model": "gpt-5.6-terra", "reasoning_effort": "low"}, "Function tools with reasoning_effort"),
        ({"store_it": True}, "store_it"),
        ({"tools.0.function.name": "a.b"}, "does not match pattern"),
    ],
)
def test_refusals_of_chat_completions(changes: dict[str, Any], words: str) -> None:
    check_chat(CHAT)
    with pytest.raises(Refusal, match=words):
        check_chat(changed(CHAT, changes))

"""The fake refuses what the real API refuses."""

from collections.abc import Callable
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


def responses(body: dict[str, Any]) -> None:
    check_responses(body, [])


@pytest.mark.parametrize(
    ("check", "good", "changes", "words"),
    [
        (responses, RESPONSES, {"input": [ASKS, CALL]}, "No tool output found for function call c1"),
        (responses, RESPONSES, {"input": [ASKS, OUTPUT, CALL]}, "No tool call found for function call output with"),
        (responses, RESPONSES, {"input.1.arguments": "[1]"}, "expected a JSON object"),
        (responses, RESPONSES, {"input.0.content": [{"type": "text", "text": "Hi"}]}, "content"),
        (responses, RESPONSES, {"temperature": 0.2}, "Unsupported parameter: 'temperature'"),
        (responses, RESPONSES, {"reasoning": {"effort": "none"}}, "Unsupported value: 'none'"),
        (responses, RESPONSES, {"model": "gpt-4.1", "include": ["reasoning.encrypted_content"]}, "is not supported"),
        (responses, RESPONSES, {"model": "gpt-99"}, "does not exist"),
        (responses, RESPONSES, {"tools.0.name": "x" * 65}, "does not match pattern"),
        (responses, RESPONSES, {"tools.0.parameters.properties.q": {"type": "text"}}, "Invalid schema"),
        (check_chat, CHAT, {"messages": [ASKS, ANSWERS]}, "must be a response to a preceding message with"),
        (check_chat, CHAT, {"messages": [ASKS, CALLS, ASKS, ANSWERS]}, "No tool output found for function call c1"),
        (check_chat, CHAT, {"max_tokens": 100}, "'max_tokens' is not supported"),
        (check_chat, CHAT, {"model": "gpt-5.6-terra", "reasoning_effort": "low"}, "Function tools with reasoning_eff"),
        (check_chat, CHAT, {"store_it": True}, "store_it"),
    ],
)
def test_refusals(
    check: Callable[[dict[str, Any]], None], good: dict[str, Any], changes: dict[str, Any], words: str
) -> None:
    check(good)
    with pytest.raises(Refusal, match=words):
        check(changed(good, changes))

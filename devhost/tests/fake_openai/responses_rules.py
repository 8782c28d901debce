"""What the Responses API refuses of a request that is well-formed.

In: a request and the items that the server issued before. Out: nothing, or the Refusal that the real API words so.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from fake_openai.models import Profile, profile
from fake_openai.refusals import Refusal, unsupported
from fake_openai.responses_schema import (
    FunctionCall,
    FunctionCallOutput,
    InputItem,
    Message,
    OutputRefusal,
    OutputText,
    ReasoningItem,
    ResponsesRequest,
)
from fake_openai.tool_rules import check_arguments, check_name, check_tool

type Issued = list[list[dict[str, Any]]]
"""The output items of every response so far."""


def check_request(request: ResponsesRequest, issued: Issued) -> None:
    _check_parameters(request, profile(request.model))
    for position, tool in enumerate(request.tools):
        check_tool(tool.name, tool.parameters, f"tools[{position}]")
    for position, item in enumerate(request.input):
        _check_item(item, f"input[{position}]")
    _check_calls(request.input)
    _check_reasoning(request.input, issued)


def _check_parameters(request: ResponsesRequest, model: Profile) -> None:
    effort = (request.reasoning and request.reasoning.effort) or model.default_effort
    if model.reasons and effort != "none":
        for name in ("temperature", "top_p"):
            if getattr(request, name) is not None:
                raise unsupported(name)
    if request.reasoning is not None and not model.reasons:
        raise unsupported("reasoning.effort")
    if model.reasons and effort not in model.efforts:
        said = f"Unsupported value: '{effort}' is not supported with the '{request.model}' model."
        raise Refusal(said, param="reasoning.effort", code="unsupported_value")
    if request.include and not model.reasons:
        raise Refusal("Encrypted content is not supported with this model.", param="include")


def _check_item(item: InputItem, place: str) -> None:
    match item:
        case Message(role=role, content=list() as parts):
            for number, part in enumerate(parts):
                if (role == "assistant") != isinstance(part, OutputText | OutputRefusal):
                    param = f"{place}.content[{number}]"
                    raise Refusal(f"Invalid value: '{part.type}'.", param=param, code="invalid_value")
        case FunctionCall():
            check_name(item.name, f"{place}.name")
            check_arguments(item.arguments, f"{place}.arguments")
        case _:
            pass


def _check_calls(items: Sequence[InputItem]) -> None:
    called: set[str] = set()
    answered: set[str] = set()
    for position, item in enumerate(items):
        if isinstance(item, FunctionCall):
            if item.call_id in called:
                raise Refusal(f"Duplicate function call with call_id {item.call_id}.", param=f"input[{position}]")
            called.add(item.call_id)
        elif isinstance(item, FunctionCallOutput):
            if item.call_id not in called:
                said = f"No tool call found for function call output with call_id {item.call_id}."
                raise Refusal(said, param="input")
            if item.call_id in answered:
                raise Refusal(f"Duplicate output for function call {item.call_id}.", param=f"input[{position}]")
            answered.add(item.call_id)
    for call_id in sorted(called - answered):
        raise Refusal(f"No tool output found for function call {call_id}.", param="input")


def _check_reasoning(items: Sequence[InputItem], issued: Issued) -> None:
    """Reasoning comes back sealed and whole, and with what it led to; what it led to, not without it."""
    seals = {item["id"]: item["encrypted_content"] for output in issued for item in output if "summary" in item}
    present = {item.id for item in items if isinstance(item, ReasoningItem)}
    for position, item in enumerate(items):
        if isinstance(item, ReasoningItem):
            if item.encrypted_content is None:
                said = f"Item with id '{item.id}' not found. Items are not persisted when `store` is set to false."
                raise Refusal(said, status=404, param="input")
            if seals.get(item.id) != item.encrypted_content:
                said = f"The encrypted content for item {item.id} could not be verified."
                raise Refusal(said, code="invalid_encrypted_content")
            if position + 1 == len(items) or getattr(items[position + 1], "id", None) is None:
                said = f"Item '{item.id}' of type 'reasoning' was provided without its required following item."
                raise Refusal(said, param="input")
        for reasoning, item_id in _led_to(issued):
            if getattr(item, "id", None) == item_id and reasoning not in present:
                said = f"Item '{item_id}' was provided without its required 'reasoning' item: '{reasoning}'."
                raise Refusal(said, param="input")


def _led_to(issued: Issued) -> list[tuple[str, str]]:
    """Pairs of a reasoning item and an item of the same response."""
    return [
        (before["id"], item["id"])
        for output in issued
        for before, item in pairwise(output)
        if before["type"] == "reasoning"
    ]

"""What OpenAI's two APIs refuse: the shape by the types of the openai package, and rules over a whole request."""

import json
import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, TypeAliasType, get_args

from jsonschema_rs import ValidationError as SchemaError
from jsonschema_rs import meta
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError
from typing_extensions import get_type_hints, is_typeddict

from fake_openai.turns import Json

_EFFORTS = {"gpt-5": ["minimal", "low", "medium", "high"], "gpt-5.4": ["none", "low", "medium", "high", "xhigh"]}
_EFFORTS["gpt-5.6-terra"] = [*_EFFORTS["gpt-5.4"], "max"]
_MODELS = {*_EFFORTS, "gpt-4.1", "llama3.2"}
_NO_TOOLS_WITH_EFFORT_IN_CHAT = "gpt-5.6-terra"


class Refusal(Exception):  # noqa: N818 - what the server answers instead
    def __init__(
        self, message: str, *, status: int = 400, kind: str = "invalid_request_error", code: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": {"message": message, "type": kind, "param": None, "code": code}}


def check_chat(request: Json) -> None:
    _check_shape(_CHAT, request)
    model = request["model"]
    effort = request.get("reasoning_effort")
    _check_model(model, effort)
    if model in _EFFORTS:
        _refuse_keys(request, "max_tokens", "presence_penalty", "frequency_penalty", "stop", "temperature", "top_p")
    if request.get("tools") and effort not in {None, "none"} and model == _NO_TOOLS_WITH_EFFORT_IN_CHAT:
        raise Refusal(f"Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions.")
    _check_tools(tool["function"] for tool in request.get("tools", ()))
    waiting: list[str] = []
    for message in request["messages"]:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                raise Refusal("Messages with role 'tool' must be a response to a preceding message with 'tool_calls'.")
            waiting.remove(message["tool_call_id"])
            continue
        _refuse_unanswered(waiting)
        for call in message.get("tool_calls") or ():
            _check_call(call["function"])
            waiting.append(call["id"])
    _refuse_unanswered(waiting)


def check_responses(request: Json, issued: list[list[Json]]) -> None:
    """Issued are the output items of every response so far."""
    _check_shape(_RESPONSES, request)
    effort = (request.get("reasoning") or {}).get("effort")
    _check_model(request["model"], effort)
    if request["model"] in _EFFORTS:
        _refuse_keys(request, "temperature", "top_p")
    elif request.get("include"):
        raise Refusal("Encrypted content is not supported with this model.")
    _check_tools(request.get("tools", ()))
    waiting: list[str] = []
    for item in request["input"]:
        if item.get("type") == "function_call":
            _check_call(item)
            waiting.append(item["call_id"])
        elif item.get("type") == "function_call_output":
            if item["call_id"] not in waiting:
                raise Refusal(f"No tool call found for function call output with call_id {item['call_id']}.")
            waiting.remove(item["call_id"])
    _refuse_unanswered(waiting)
    _check_reasoning(request["input"], issued)


def _check_reasoning(items: list[Json], issued: list[list[Json]]) -> None:
    """Reasoning comes back as it was issued, and with the item that followed it; that item, not without it."""
    ids = [item.get("id") for item in items]
    for first, second in (pair for output in issued for pair in pairwise(output) if pair[0]["type"] == "reasoning"):
        if second["id"] in ids and first["id"] not in ids:
            raise Refusal(f"Item '{second['id']}' was provided without its required 'reasoning' item.")
        if first["id"] in ids and second["id"] not in ids:
            raise Refusal(f"Item '{first['id']}' was provided without its required following item.")
    for item in items:
        if item.get("type") == "reasoning" and item not in [item for output in issued for item in output]:
            raise Refusal(f"The encrypted content for item {item['id']} could not be verified.")


def _check_model(model: str, effort: str | None) -> None:
    if model not in _MODELS:
        raise Refusal(f"The model `{model}` does not exist.", status=404, code="model_not_found")
    if effort is not None and effort not in _EFFORTS.get(model, ()):
        raise Refusal(f"Unsupported value: '{effort}' is not supported with the '{model}' model.")


def _refuse_keys(request: Json, *keys: str) -> None:
    for key in request.keys() & set(keys):
        raise Refusal(f"Unsupported parameter: '{key}' is not supported with this model.")


def _check_tools(functions: Iterable[Json]) -> None:
    for function in functions:
        _check_name(function["name"])
        try:
            meta.validate(function["parameters"])
        except SchemaError as error:
            raise Refusal(f"Invalid schema for function '{function['name']}': {error.message}.") from error


def _check_call(function: Mapping[str, Any]) -> None:
    _check_name(function["name"])
    try:
        arguments = json.loads(function["arguments"])
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        raise Refusal(f"Invalid arguments of '{function['name']}': expected a JSON object.")


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
        raise Refusal(f"Invalid name '{name}': string does not match pattern. Expected '^[a-zA-Z0-9_-]{{1,64}}$'.")


def _refuse_unanswered(waiting: list[str]) -> None:
    if waiting:
        raise Refusal(f"No tool output found for function call {', '.join(waiting)}.")


def _check_shape(shape: TypeAdapter[Any], request: Json) -> None:
    try:
        shape.dump_json(shape.validate_python(request))  # what an iterable holds is checked when it is read
    except (ValidationError, PydanticSerializationError) as error:
        raise Refusal(str(error)) from error


def _strict(kind: Any, seen: set[object]) -> None:  # noqa: ANN401 - any annotation
    """Lets no unknown keys into a TypedDict, nor into those within it."""
    if kind in seen:
        return
    seen.add(kind)
    if is_typeddict(kind):
        kind.__pydantic_config__ = ConfigDict(extra="forbid", strict=True)
        parts: Iterable[Any] = get_type_hints(kind, include_extras=True).values()
    else:
        parts = get_args(kind.__value__ if isinstance(kind, TypeAliasType) else kind)
    for part in parts:
        _strict(part, seen)


def _shape(kind: Any) -> TypeAdapter[Any]:  # noqa: ANN401 - a TypedDict
    _strict(kind, set())
    return TypeAdapter(kind)


_CHAT = _shape(CompletionCreateParamsStreaming)
_RESPONSES = _shape(ResponseCreateParamsStreaming)

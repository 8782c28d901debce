"""What Chat Completions refuses of a request that is well-formed, in the real API's words."""

from collections.abc import Sequence

from fake_openai.chat_schema import AssistantMessage, ChatMessage, ChatRequest, ToolMessage
from fake_openai.models import Profile, profile
from fake_openai.refusals import Refusal, unsupported
from fake_openai.tool_rules import check_arguments, check_name, check_tool


def check_request(request: ChatRequest) -> None:
    model = profile(request.model)
    _check_parameters(request, model)
    for position, tool in enumerate(request.tools or ()):
        check_tool(tool.function.name, tool.function.parameters, f"tools[{position}].function")
    for position, message in enumerate(request.messages):
        if message.role == "developer" and not model.is_openais:
            raise Refusal("Unexpected role: developer.", param=f"messages[{position}].role", code="invalid_value")
    _check_calls(request.messages)


def _check_parameters(request: ChatRequest, model: Profile) -> None:
    if model.reasons:
        if request.max_tokens is not None:
            raise unsupported("max_tokens", " Use 'max_completion_tokens' instead.")
        for name in ("presence_penalty", "frequency_penalty", "stop"):
            if getattr(request, name) is not None:
                raise unsupported(name)
        for name in ("temperature", "top_p"):
            value = getattr(request, name)
            if value is not None and value != 1:
                said = f"Unsupported value: '{name}' does not support {value} with this model. Only the default (1) is."
                raise Refusal(said, param=name, code="unsupported_value")
    if request.reasoning_effort is not None and model.is_openais:
        _check_effort(request, request.reasoning_effort, model)


def _check_effort(request: ChatRequest, effort: str, model: Profile) -> None:
    if not model.reasons:
        raise Refusal("Unrecognized request argument supplied: reasoning_effort")
    if effort not in model.efforts:
        said = f"Unsupported value: 'reasoning_effort' does not support '{effort}' with this model."
        raise Refusal(said, param="reasoning_effort", code="unsupported_value")
    if request.tools and effort != "none" and not model.chat_takes_tools_with_effort:
        said = f"Function tools with reasoning_effort are not supported for {request.model} in /v1/chat/completions."
        raise Refusal(said, param="reasoning_effort")


def _check_calls(messages: Sequence[ChatMessage]) -> None:
    waiting: list[str] = []
    for position, message in enumerate(messages):
        place = f"messages.[{position}]"
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in waiting:
                raise Refusal(
                    "Invalid parameter: messages with role 'tool' must be a response to a preceding message with "
                    "'tool_calls'.",
                    param=f"{place}.role",
                )
            waiting.remove(message.tool_call_id)
            continue
        _refuse_unanswered(waiting)
        if isinstance(message, AssistantMessage):
            waiting = _check_assistant(message, place)
    _refuse_unanswered(waiting)


def _check_assistant(message: AssistantMessage, place: str) -> list[str]:
    if message.content is None and not message.tool_calls:
        said = "Invalid value for 'content': expected a string, got null."
        raise Refusal(said, param=f"{place}.content")
    ids = [call.id for call in message.tool_calls or ()]
    if len(set(ids)) < len(ids):
        raise Refusal("Duplicate value for 'tool_call_id'.", param=f"{place}.tool_calls")
    for number, call in enumerate(message.tool_calls or ()):
        check_name(call.function.name, f"{place}.tool_calls[{number}].function.name")
        check_arguments(call.function.arguments, f"{place}.tool_calls[{number}].function.arguments")
    return ids


def _refuse_unanswered(waiting: Sequence[str]) -> None:
    if waiting:
        raise Refusal(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(waiting)}",
            param="messages",
        )

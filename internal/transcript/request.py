"""Brings requests into a form that every provider accepts (docs/model-facts.md, "What every request keeps").

This module does not depend on the provider. The same messages always get the same form, so that a request begins with
the same bytes as the previous one.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from dify_plugin.entities.model.message import (
    AssistantPromptMessage,
    PromptMessage,
    PromptMessageTool,
    SystemPromptMessage,
    TextPromptMessageContent,
    ToolPromptMessage,
    UserPromptMessage,
)

from internal.call import portable_id
from internal.clock import in_turns
from internal.sources import attribute, escaped
from internal.transcript.steps import (
    Content,
    TurnMessage,
    is_blank,
    paragraphs,
    sound_content,
    split_notes,
    text_unless_blank,
)
from prompt import template

_BEFORE_THE_MODEL = (ToolPromptMessage, UserPromptMessage)
_SHOWN_ARGUMENTS = 500  # maximum characters of a call's arguments that its result repeats


def sound_messages(messages: Iterable[PromptMessage], model: str) -> list[PromptMessage]:
    """Return the messages of a request to ``model`` ("provider/name").

    No text is blank, the text of a turn is one part, and an assistant message stands before each user message. Calls
    that another model made get ids that every provider accepts.
    """
    sound: list[PromptMessage] = []
    calls = _Calls(model)
    for message in in_turns(_with_one_instruction(messages)):
        shaped = _without_blanks(calls.fitting(message))
        if shaped is None:
            continue
        sound += _turn_between(sound, shaped)
        sound.append(shaped)
    return sound


def messages_with_calls_in_text(
    messages: Iterable[PromptMessage], tools: Sequence[PromptMessageTool]
) -> Iterator[PromptMessage]:
    """Yield the messages for a model that writes its calls as text and reads their results in a user message.

    The system prompt ends with the description of the tools.
    """
    described = SystemPromptMessage(content=text_tools(template.TEXT_CALLS_POLICY, tools))
    results: list[ToolPromptMessage] = []
    for message in in_turns(_with_one_instruction([*messages, described])):
        if isinstance(message, ToolPromptMessage):
            results.append(message)
            continue
        yield from _results_in_text(results)
        results = []
        yield _turn_in_text(message)
    yield from _results_in_text(results)


def _with_one_instruction(messages: Iterable[PromptMessage]) -> Iterator[PromptMessage]:
    """Yield the messages with all system messages merged into one at the beginning, as chat templates require."""
    instructions: list[str] = []
    others: list[PromptMessage] = []
    for message in in_turns(messages):
        if isinstance(message, SystemPromptMessage):
            instructions.append(message.get_text_content())
        else:
            others.append(message)
    if instruction := paragraphs(*instructions):
        yield SystemPromptMessage(content=instruction)
    yield from others


def text_tools(wording: str, tools: Sequence[PromptMessageTool]) -> str:
    """Return the tools as text, one per line; "" if there are none."""
    if not tools:
        return ""
    lines = [tool.model_dump_json(include={"name", "description", "parameters"}) for tool in tools]
    return wording.format(tools="\n".join(lines))


def _turn_in_text(message: PromptMessage) -> PromptMessage:
    if not isinstance(message, AssistantPromptMessage) or not message.tool_calls:
        return message
    blocks = [
        template.TEXT_CALL.format(name=json.dumps(call.function.name), arguments=call.function.arguments)
        for call in message.tool_calls
    ]
    text = sound_content(message.content or "")
    if isinstance(text, str):
        said = text
    else:
        said = message.get_text_content()
    return AssistantPromptMessage(content=paragraphs(said.strip(), *blocks))


def _results_in_text(results: Sequence[ToolPromptMessage]) -> Iterator[PromptMessage]:
    """Yield the results, with the tags of the surrounding blocks escaped, and then the agent's notes."""
    if not results:
        return
    split = [split_notes(message.get_text_content()) for message in results]
    outputs = [
        template.TOOL_OUTPUT.format(tool=attribute(message.name or ""), result=escaped(said))
        for message, (said, _) in zip(results, split, strict=True)
    ]
    notes = "".join(note for _, note in split)
    yield UserPromptMessage(content="\n\n".join(outputs) + notes)


def _turn_between(before: Sequence[PromptMessage], message: PromptMessage) -> list[PromptMessage]:
    """Return the message to insert before this one, if necessary, so that user and model alternate.

    Mistral refuses a user message after a result, Bedrock refuses a conversation that begins with the model, and strict
    chat templates refuse two messages of the same role in a row.
    """
    is_turn_of_model = bool(before) and isinstance(before[-1], _BEFORE_THE_MODEL)
    if isinstance(message, UserPromptMessage) and is_turn_of_model:
        return [AssistantPromptMessage(content=template.TURN_BETWEEN)]
    if isinstance(message, AssistantPromptMessage) and not is_turn_of_model:
        return [UserPromptMessage(content=template.NO_TEXT)]
    return []


def _without_blanks(message: PromptMessage) -> PromptMessage | None:
    """Return the message without blank texts, which Anthropic refuses; None for an empty turn of the model."""
    match message:
        case AssistantPromptMessage():
            content = sound_content(message.content or "")
            is_empty = not content and not message.tool_calls and message.opaque_body is None
            if is_empty:
                return None
            return _with_content(message, content)
        case ToolPromptMessage():
            return _with_content(message, _without_blank_parts(message.content or "") or template.NO_OUTPUT)
        case _:
            return _with_content(message, _without_blank_parts(message.content or "") or template.NO_TEXT)


def _without_blank_parts(content: Content) -> Content:
    """Return content without blank parts. A user's texts are not merged, so a line about a file stays separate."""
    if isinstance(content, str):
        return text_unless_blank(content)
    return [part for part in content if not isinstance(part, TextPromptMessageContent) or not is_blank(part.data)]


def _with_content(message: PromptMessage, content: Content) -> PromptMessage:
    if content == message.content:
        return message
    return message.model_copy(update={"content": content})


class _Calls:
    """The calls of one request and their results. A model's own ids stay unchanged and are unique in a turn.

    Plugins that use function names as ids need equal ids back: docs/model-facts.md, "Equal ids in one turn".
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._seen = Counter[str]()
        self._waiting: list[AssistantPromptMessage.ToolCall] = []
        """Calls of the last turn whose results have not followed yet, with their ids in the request."""
        self._together = defaultdict[str, list[str]](list)

    def fitting(self, message: PromptMessage) -> PromptMessage:
        if isinstance(message, ToolPromptMessage) and self._waiting:
            return self._fitting_result(message, self._waiting.pop(0))
        self._waiting = []
        if not isinstance(message, TurnMessage):
            return message
        is_own = message.model in ("", self._model)
        seen = Counter[str]()
        for call in message.tool_calls:
            seen[call.id] += 1
            self._seen[call.id] += 1
            keeps_id = is_own and (seen[call.id] == 1 or call.id == call.function.name)
            fitting = call
            if not keeps_id:
                fitting = call.model_copy(update={"id": portable_id(call.id, self._seen[call.id])})
            self._waiting.append(fitting)
        if all(fitting is call for fitting, call in zip(self._waiting, message.tool_calls, strict=True)):
            return message
        return message.model_copy(update={"tool_calls": list(self._waiting)})

    def _fitting_result(self, message: ToolPromptMessage, call: AssistantPromptMessage.ToolCall) -> PromptMessage:
        name = call.function.name
        shaped = message
        if message.tool_call_id != call.id:
            shaped = message.model_copy(update={"tool_call_id": call.id})
        if call.id != name or self._seen[name] == 1:
            return shaped
        said, notes = split_notes(message.get_text_content())
        arguments = attribute(call.function.arguments[:_SHOWN_ARGUMENTS])
        block = template.TOOL_OUTPUT_OF_CALL.format(tool=name, arguments=arguments, result=escaped(said))
        self._together[name].append(block)
        if any(each.id == name for each in self._waiting):
            return _with_content(shaped, template.RESULT_STANDS_LAST.format(tool=name))
        return _with_content(shaped, "\n\n".join(self._together.pop(name)) + notes)

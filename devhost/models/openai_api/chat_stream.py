"""The stream of a chat completion, as turn events.

In: Chat Completions' chunks, from OpenAI or a server like it. Out: text and fragments of tool calls as they come,
reasoning as thoughts; at the end the finish reason and the usage, which comes last.
"""

from collections.abc import Iterable, Iterator

from openai.types.chat import ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import ChoiceDelta, ChoiceDeltaToolCall

from devhost.models.backend import tool_call
from devhost.models.provider.failures import cut_off
from devhost.models.provider.tokens import TokenCounts
from devhost.models.provider.turn_events import Called, Finished, Said, ThoughtText, TurnEvent, text_of
from devhost.protocol.wire import JsonObject

_REASONING = ("reasoning_content", "reasoning")
"""Two names of the same field: the first in DeepSeek, LM Studio and older vLLM, the second in Ollama and vLLM."""


def chat_turn(chunks: Iterable[ChatCompletionChunk]) -> Iterator[TurnEvent]:
    text = ThoughtText()
    fragments = _Fragments()
    reason, tokens = None, None
    for chunk in chunks:
        if chunk.usage is not None:
            tokens = TokenCounts.read(chunk.usage.to_dict(), "prompt_tokens", "completion_tokens")
        for choice in chunk.choices or ():
            reason = text_of(choice.finish_reason) or reason
            # Some servers end with a choice whose delta is null, or has none.
            delta: ChoiceDelta = getattr(choice, "delta", None) or ChoiceDelta()
            yield Said(text.thought(_reasoning(delta)))
            yield Said(text.words(_words(delta.content) + _words(delta.refusal)))
            if delta.tool_calls:
                yield Said(text.end())
                yield Called(tuple(fragments.passed_on(call) for call in delta.tool_calls))
    yield Said(text.end())
    if reason is None:
        raise cut_off("a finish_reason")
    yield Finished(reason, tokens=tokens)


def _reasoning(delta: ChoiceDelta) -> str:
    extra = delta.model_extra or {}
    return next((value for name in _REASONING if isinstance(value := extra.get(name), str)), "")


def _words(content: object) -> str:
    """Some servers stream a list of parts, of which those of type text are the answer."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if part["type"] == "text")
    return text_of(content)


class _Fragments:
    """Dify's fragments have no index: one without an id continues the last call, so a jump needs the id again."""

    def __init__(self) -> None:
        self._ids: dict[int, str] = {}
        self._last: int | None = None

    def passed_on(self, fragment: ChoiceDeltaToolCall) -> JsonObject:
        index = fragment.index
        if fragment.id:
            self._ids[index] = fragment.id
        call_id = text_of(fragment.id)
        if not call_id and index != self._last:
            call_id = self._ids.get(index, "")
        self._last = index
        function = fragment.function
        name, arguments = (function.name, function.arguments) if function else ("", "")
        return tool_call(call_id, text_of(name), text_of(arguments))

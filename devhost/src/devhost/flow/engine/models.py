"""devhost's models in the place of those that Dify's model plugins bring."""

import json
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NoReturn, override

from graphon.model_runtime.entities.llm_entities import (
    LLMMode,
    LLMResult,
    LLMResultChunk,
    LLMResultChunkDelta,
    LLMResultChunkWithStructuredOutput,
    LLMUsage,
)
from graphon.model_runtime.entities.message_entities import (
    AssistantPromptMessage,
    PromptMessage,
    PromptMessageTool,
    UserPromptMessage,
)
from graphon.model_runtime.entities.model_entities import AIModelEntity, ModelFeature
from graphon.model_runtime.errors.invoke import InvokeError
from graphon.model_runtime.memory.prompt_message_memory import PromptMessageMemory
from graphon.model_runtime.model_providers.base.large_language_model import merge_tool_call_deltas
from graphon.nodes.llm.entities import ModelConfig
from graphon.nodes.llm.exc import LLMNodeError
from graphon.nodes.llm.file_saver import LLMFileSaver
from graphon.nodes.llm.reasoning import split_reasoning
from graphon.nodes.llm.runtime_protocols import LLMProtocol, PromptMessageSerializerProtocol
from json_repair import repair_json

from devhost.flow.engine.turn import Playing
from devhost.models.backend import ModelBackend, ModelCallError, ModelDescription, ModelRequest
from devhost.node.parameters import WINDOW_TOKENS, estimated_tokens, window
from devhost.protocol.failures import ApiCallError, ApiStalledError
from devhost.protocol.wire import JsonObject
from devhost.trace.flow import FlowNode

# The model of a node, looked for only when it is asked: a node may not run, and a tool may ask no model.


class AskedModel:
    def __init__(self, node: FlowNode, playing: Playing) -> None:
        self._node = node
        self._playing = playing

    @cached_property
    def _backend(self) -> ModelBackend:
        with self._playing.mistakes.watched():
            return self._playing.around.model(self._node, self._playing.turn.query)

    @property
    def description(self) -> ModelDescription:
        return self._backend.description

    def invoke(self, request: ModelRequest, /) -> Iterator[JsonObject]:
        return self._backend.invoke(request)


# A provider's failure as the engine's nodes know it.


KINDS = {kind.__name__: kind for kind in InvokeError.__subclasses__()}


@contextmanager
def provider_failures() -> Iterator[None]:
    """Raises an `InvokeError` in the place of each failure of the model that is called inside."""
    try:
        yield
    except ModelCallError as error:
        raise KINDS.get(error.error_type, InvokeError)(error.message) from error
    except (ApiCallError, ApiStalledError) as error:  # what a script makes of Dify's API
        raise InvokeError(str(error) or "the API does not answer") from error


# The conversation before a turn, as nodes with memory get it.


class History(PromptMessageMemory):
    def __init__(self, messages: Sequence[JsonObject]) -> None:
        """Of users and assistants, the oldest first."""
        self._messages = messages

    @override
    def get_history_prompt_messages(
        self, max_token_limit: int = WINDOW_TOKENS, message_limit: int | None = None
    ) -> Sequence[PromptMessage]:
        """`message_limit` counts turns: Dify's message is a question with its answer."""
        kept = window(self._messages, tokens=max_token_limit, turns=message_limit)
        return [_prompt_message(message) for message in kept]


def _prompt_message(message: JsonObject) -> PromptMessage:
    kind = UserPromptMessage if message["role"] == "user" else AssistantPromptMessage
    return kind.model_validate(message)


# A model's chunks as the engine's.


def engine_chunks(chunks: Iterable[JsonObject]) -> Iterator[LLMResultChunk]:
    """From chunks as `devhost.models.backend.chunk` makes them."""
    for said in chunks:
        delta, usage = said["delta"], said["delta"]["usage"]
        yield LLMResultChunk(
            model=said["model"],
            delta=LLMResultChunkDelta(
                index=delta["index"],
                message=AssistantPromptMessage.model_validate(delta["message"]),
                usage=None if usage is None else LLMUsage.from_metadata(usage),
                finish_reason=delta["finish_reason"],
            ),
        )


def collected(model: str, chunks: Iterable[LLMResultChunk]) -> LLMResult:
    """All chunks of one answer as the result of a call that does not stream."""
    text, usage = "", LLMUsage.empty_usage()
    calls: list[AssistantPromptMessage.ToolCall] = []
    for each in chunks:
        text += each.delta.message.get_text_content()
        merge_tool_call_deltas(each.delta.message.tool_calls, calls)
        usage = each.delta.usage or usage
    return LLMResult(model=model, message=AssistantPromptMessage(content=text, tool_calls=calls), usage=usage)


# A model's answer as an object of a JSON Schema: structured output of the LLM node.
#
# Text around the JSON and small mistakes in it are repaired, as in Dify, with the same library.

SCHEMA_NAME = "llm_response"
"""Dify's name for every schema."""


class NotStructuredError(ValueError):
    """The answer is not a JSON object."""


def asking_for(schema: Mapping[str, Any]) -> JsonObject:
    """The parameters of the model that ask for it, in the names of Dify's OpenAI plugin."""
    return {
        "response_format": "json_schema",
        "json_schema": json.dumps({"name": SCHEMA_NAME, "schema": schema}, ensure_ascii=False),
    }


def structured(
    model: str, chunks: Iterable[LLMResultChunk]
) -> Generator[LLMResultChunkWithStructuredOutput, None, None]:
    text = ""
    for each in chunks:
        text += each.delta.message.get_text_content()
        yield LLMResultChunkWithStructuredOutput(model=each.model, delta=each.delta)
    last = LLMResultChunkDelta(index=0, message=AssistantPromptMessage(content=""))
    yield LLMResultChunkWithStructuredOutput(model=model, delta=last, structured_output=read_object(text))


def read_object(text: str) -> JsonObject:
    said, _ = split_reasoning(text, "separated")
    read = repair_json(said, return_objects=True)
    if not isinstance(read, dict):
        raise NotStructuredError(f"the answer is not a JSON object: {text}")
    return read


# What the engine's model nodes ask for besides a model: where an answer's files go, and how prompts are kept.


class NoFiles(LLMFileSaver):
    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise LLMNodeError("devhost's models answer with text only")

    save_binary_string = _refuse
    save_remote_url = _refuse


class PromptsAsSaved(PromptMessageSerializerProtocol):
    """As a node's process data have them: role and text."""

    @override
    def serialize(self, *, model_mode: LLMMode, prompt_messages: Sequence[PromptMessage]) -> list[JsonObject]:
        return [{"role": message.role.value, "text": message.get_text_content()} for message in prompt_messages]


# The model of one LLM, question classifier or parameter extractor node, as the engine calls it.


class NodeModel(LLMProtocol):
    """Of one run of a node: what runs side by side shares is the backend."""

    def __init__(self, node: FlowNode, config: ModelConfig, playing: Playing) -> None:
        self._node = node
        self._config = config
        self._playing = playing
        self._backend = AskedModel(node, playing)
        self._parameters = {name: value for name, value in config.completion_params.items() if name != "stop"}

    @property
    @override
    def provider(self) -> str:
        """As the file has it: the engine keeps only the last part."""
        return str(self._node.data["model"]["provider"])

    @property
    @override
    def model_name(self) -> str:
        """A scripted model answers under any name: then it is the node's."""
        described = self._backend.description
        return self._config.name if described.scripted else described.name

    @property
    @override
    def parameters(self) -> Mapping[str, Any]:
        return self._parameters

    @parameters.setter
    def parameters(self, value: Mapping[str, Any]) -> None:
        self._parameters = dict(value)

    @property
    @override
    def stop(self) -> Sequence[str] | None:
        """Dify keeps the texts that end an answer among the model's parameters."""
        stop = self._config.completion_params.get("stop")
        return stop if isinstance(stop, list) else None

    @override
    def get_model_schema(self) -> AIModelEntity:
        """Dify hides from strategies that a model can answer in a schema: here every model can."""
        entity = self._backend.description.selector(())["entity"]
        features = [*entity["features"], ModelFeature.STRUCTURED_OUTPUT]
        return AIModelEntity.model_validate({**entity, "model": self.model_name, "features": features})

    @override
    def get_llm_num_tokens(self, prompt_messages: Sequence[PromptMessage]) -> int:
        return sum(estimated_tokens(message.get_text_content()) for message in prompt_messages)

    @override
    def invoke_llm(  # type: ignore[override]  # the protocol's overloads tell the results apart by `stream`
        self,
        *,
        prompt_messages: Sequence[PromptMessage],
        model_parameters: Mapping[str, Any],
        tools: Sequence[PromptMessageTool] | None,
        stop: Sequence[str] | None,
        stream: bool,
    ) -> LLMResult | Generator[LLMResultChunk, None, None]:
        chunks = self._chunks(prompt_messages, model_parameters, tools, stop, stream=stream)
        return chunks if stream else collected(self.model_name, chunks)

    @override
    def invoke_llm_with_structured_output(  # type: ignore[override]
        self,
        *,
        prompt_messages: Sequence[PromptMessage],
        json_schema: Mapping[str, Any],
        model_parameters: Mapping[str, Any],
        stop: Sequence[str] | None,
        stream: bool,
    ) -> Generator[LLMResultChunkWithStructuredOutput, None, None]:
        """The engine's only caller streams."""
        parameters = {**model_parameters, **asking_for(json_schema)}
        return structured(self.model_name, self._chunks(prompt_messages, parameters, None, stop, stream=stream))

    @override
    def is_structured_output_parse_error(self, error: Exception) -> bool:
        return isinstance(error, NotStructuredError)

    def _chunks(
        self,
        messages: Sequence[PromptMessage],
        parameters: Mapping[str, Any],
        tools: Sequence[PromptMessageTool] | None,
        stop: Sequence[str] | None,
        *,
        stream: bool,
    ) -> Generator[LLMResultChunk, None, None]:
        request = ModelRequest.model_validate(
            {
                "provider": self.provider,
                "model": self.model_name,
                "mode": self._config.mode.value,
                "completion_params": {**parameters, **dict(self._backend.description.completion_params)},
                "prompt_messages": tuple(message.model_dump(mode="json") for message in messages),
                "tools": tuple(tool.model_dump(mode="json") for tool in tools) if tools else None,
                "stop": tuple(stop) if stop else None,
                "stream": stream,
            }
        )
        asked = {**request.model_dump(mode="json"), "entity": self._backend.description.selector(())["entity"]}
        with self._playing.mistakes.watched(InvokeError), provider_failures():
            said = self._playing.ending.until_stopped(self._backend.invoke(request))
            yield from engine_chunks(self._playing.around.heard(self._node, "llm", asked, said))

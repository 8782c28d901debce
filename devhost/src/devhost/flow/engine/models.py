"""Connects devhost's models to the engine, in place of the models of Dify's model plugins."""

import json
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, override

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
from graphon.model_runtime.model_providers.base.large_language_model import normalize_non_stream_runtime_result
from graphon.nodes.llm.entities import ModelConfig
from graphon.nodes.llm.reasoning import split_reasoning
from graphon.nodes.llm.runtime_protocols import LLMProtocol, PromptMessageSerializerProtocol
from json_repair import repair_json

from devhost.flow.engine.turn import RunningTurn
from devhost.models.backend import ModelBackend, ModelCallError, ModelDescription, ModelRequest
from devhost.node.parameters import WINDOW_TOKENS, estimated_tokens, window
from devhost.protocol.failures import ApiCallError, ApiStalledError
from devhost.protocol.wire import JsonObject
from devhost.trace.flow import FlowNode


class AskedModel:
    """The model of a node. It is looked up on first use, because a node may not run and a tool may need no model."""

    def __init__(self, node: FlowNode, playing: RunningTurn) -> None:
        self._node = node
        self._playing = playing

    @cached_property
    def _backend(self) -> ModelBackend:
        with self._playing.mistakes.watched():
            return self._playing.around.model(self._node)

    @property
    def description(self) -> ModelDescription:
        return self._backend.description

    def invoke(self, request: ModelRequest, /) -> Iterator[JsonObject]:
        return self._backend.invoke(request)


class PastMessages(PromptMessageMemory):
    """The conversation before a turn, for nodes with memory."""

    def __init__(self, messages: Sequence[JsonObject]) -> None:
        """`messages` are user and assistant messages, oldest first."""
        self._messages = messages

    @override
    def get_history_prompt_messages(
        self, max_token_limit: int = WINDOW_TOKENS, message_limit: int | None = None
    ) -> Sequence[PromptMessage]:
        """Returns the newest messages. `message_limit` counts turns: Dify's message is a question with its answer."""
        kinds: dict[str, type[PromptMessage]] = {"user": UserPromptMessage, "assistant": AssistantPromptMessage}
        kept = window(self._messages, tokens=max_token_limit, turns=message_limit)
        return [kinds[message["role"]].model_validate(message) for message in kept]


class PromptsAsSaved(PromptMessageSerializerProtocol):
    """Serializes prompts as they appear in a node's process data, with role and text."""

    @override
    def serialize(self, *, model_mode: LLMMode, prompt_messages: Sequence[PromptMessage]) -> list[JsonObject]:
        return [{"role": message.role.value, "text": message.get_text_content()} for message in prompt_messages]


# Converts a model's answer to the engine's types. Structured output must be a JSON object. Text around the JSON is
# removed and small mistakes in it are repaired, as in Dify and with the same library.


class NotStructuredError(ValueError):
    """The answer is not a JSON object."""


def engine_chunk(said: JsonObject) -> LLMResultChunk:
    """Converts a chunk that `devhost.models.backend.chunk` made."""
    usage = said["delta"]["usage"]
    delta = {**said["delta"], "usage": None if usage is None else LLMUsage.from_metadata(usage)}
    return LLMResultChunk.model_validate({**said, "delta": delta})


def structured(model: str, chunks: Iterable[LLMResultChunk]) -> Generator[LLMResultChunk]:
    """Yields the chunks and then the object in their text. Raises NotStructuredError if the text contains no object."""
    text = ""
    for each in chunks:
        text += each.delta.message.get_text_content()
        yield each
    said, _ = split_reasoning(text, "separated")
    read = repair_json(said, return_objects=True)
    if not isinstance(read, dict):
        raise NotStructuredError(f"the answer is not a JSON object: {text}")
    last = LLMResultChunkDelta(index=0, message=AssistantPromptMessage(content=""))
    yield LLMResultChunkWithStructuredOutput(model=model, delta=last, structured_output=read)


KINDS = {kind.__name__: kind for kind in InvokeError.__subclasses__()}
"""The engine's exceptions for failures of a provider, by class name."""


class NodeModel(AskedModel, LLMProtocol):
    """The model of one LLM, Question Classifier or Parameter Extractor node, as the engine calls it.

    Each run of a node has its own instance. Runs in parallel share only the backend.
    """

    provider = ""
    """The provider's full name from the file. The engine keeps only the last part of it."""
    parameters: Mapping[str, Any] = {}
    stop: Sequence[str] | None = None
    """The stop sequences, which Dify keeps among the model's parameters."""

    def __init__(self, node: FlowNode, config: ModelConfig, playing: RunningTurn) -> None:
        super().__init__(node, playing)
        self._config = config
        self.provider = str(node.data["model"]["provider"])
        self.parameters = {name: value for name, value in config.completion_params.items() if name != "stop"}
        stop = config.completion_params.get("stop")
        if isinstance(stop, list):
            self.stop = stop
        else:
            self.stop = None

    @property
    @override
    def model_name(self) -> str:
        """The name of the model. A scripted model takes its name from the node."""
        if self.description.scripted:
            return self._config.name
        return self.description.name

    @override
    def get_model_schema(self) -> AIModelEntity:
        """Describes the model, always with support for structured output. Dify hides this feature from strategies."""
        entity = self.description.selector(())["entity"]
        features = [*entity["features"], ModelFeature.STRUCTURED_OUTPUT]
        return AIModelEntity.model_validate({**entity, "model": self.model_name, "features": features})

    @override
    def get_llm_num_tokens(self, prompt_messages: Sequence[PromptMessage]) -> int:
        return sum(estimated_tokens(message.get_text_content()) for message in prompt_messages)

    @override
    def invoke_llm(  # type: ignore[override]  # the protocol has an overload for each value of `stream`
        self, *, stream: bool, **asked: Any
    ) -> LLMResult | Generator[LLMResultChunk]:
        """`asked` are the other arguments of `_chunks`."""
        chunks = self._chunks(stream=stream, **asked)
        if stream:
            return chunks
        return normalize_non_stream_runtime_result(self.model_name, (), chunks)

    @override
    def invoke_llm_with_structured_output(  # type: ignore[override]
        self, *, json_schema: Mapping[str, Any], model_parameters: Mapping[str, Any], **asked: Any
    ) -> Generator[LLMResultChunk]:
        """Streams an answer that fits a JSON Schema. The engine calls this method only for streams.

        The parameters are named as in Dify's OpenAI plugin.
        """
        schema = json.dumps({"name": "llm_response", "schema": json_schema}, ensure_ascii=False)  # Dify's fixed name
        parameters = {**model_parameters, "response_format": "json_schema", "json_schema": schema}
        return structured(self.model_name, self._chunks(model_parameters=parameters, tools=None, **asked))

    @override
    def is_structured_output_parse_error(self, error: Exception) -> bool:
        return isinstance(error, NotStructuredError)

    def _chunks(
        self,
        *,
        prompt_messages: Sequence[PromptMessage],
        model_parameters: Mapping[str, Any],
        tools: Sequence[PromptMessageTool] | None,
        stop: Sequence[str] | None,
        stream: bool,
    ) -> Generator[LLMResultChunk]:
        request = ModelRequest.model_validate(
            {
                "provider": self.provider,
                "model": self.model_name,
                "mode": self._config.mode.value,
                "completion_params": {**model_parameters, **dict(self.description.completion_params)},
                "prompt_messages": [message.model_dump(mode="json") for message in prompt_messages],
                "tools": [tool.model_dump(mode="json") for tool in tools] if tools else None,
                "stop": stop or None,
                "stream": stream,
            }
        )
        asked = {**request.model_dump(mode="json"), "entity": self.description.selector(())["entity"]}
        with self._playing.mistakes.watched(InvokeError):
            try:
                said = self._playing.ending.until_stopped(self.invoke(request))
                yield from map(engine_chunk, self._playing.around.heard(self._node, "llm", asked, said))
            except ModelCallError as error:
                raise KINDS.get(error.error_type, InvokeError)(error.message) from error
            except (ApiCallError, ApiStalledError) as error:  # failures of Dify's API that a script simulates
                raise InvokeError(str(error) or "the API does not answer") from error

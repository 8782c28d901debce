"""The model of one LLM, question classifier or parameter extractor node, as the engine calls it.

In: the engine's prompt messages. Out: the answer of the `ModelBackend` that stands for the node's model.
"""

from collections.abc import Generator, Mapping, Sequence
from typing import Any, override

from graphon.model_runtime.entities.llm_entities import LLMResult, LLMResultChunk, LLMResultChunkWithStructuredOutput
from graphon.model_runtime.entities.message_entities import PromptMessage, PromptMessageTool
from graphon.model_runtime.entities.model_entities import AIModelEntity, ModelFeature
from graphon.model_runtime.errors.invoke import InvokeError
from graphon.nodes.llm.entities import ModelConfig
from graphon.nodes.llm.runtime_protocols import LLMProtocol

from devhost.flow.document import FlowNode
from devhost.flow.engine.models.asked_model import AskedModel
from devhost.flow.engine.models.failures import provider_failures
from devhost.flow.engine.models.messages import collected, engine_chunks, model_request
from devhost.flow.engine.models.structured import NotStructuredError, asking_for, structured
from devhost.flow.engine.turn.playing import Playing
from devhost.node.memory import estimated_tokens


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
        model = {"provider": self.provider, "model": self.model_name, "mode": self._config.mode.value}
        given = {**parameters, **dict(self._backend.description.completion_params)}
        request = model_request(model, messages, given, tools, stop, stream=stream)
        with self._playing.mistakes.watched(InvokeError), provider_failures():
            yield from engine_chunks(self._playing.ending.until_stopped(self._backend.invoke(request)))

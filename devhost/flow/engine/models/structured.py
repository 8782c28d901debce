"""A model's answer as an object of a JSON Schema: structured output of the LLM node.

In: the chunks of an answer that should be JSON. Out: the same chunks, then one with the object. Text around the JSON
and small mistakes in it are repaired, as in Dify, with the same library.
"""

import json
from collections.abc import Generator, Iterable, Mapping
from typing import Any

from graphon.model_runtime.entities.llm_entities import (
    LLMResultChunk,
    LLMResultChunkDelta,
    LLMResultChunkWithStructuredOutput,
)
from graphon.model_runtime.entities.message_entities import AssistantPromptMessage
from graphon.nodes.llm.reasoning import split_reasoning
from json_repair import repair_json

from devhost.protocol.wire import JsonObject

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

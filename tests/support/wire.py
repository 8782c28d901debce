"""What models and tools send, as plain dicts: builders for scripts, each saying one thing."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from devhost.models.backend import chunk, tool_call
from tests.support.host import CallFails, Handler, Json

MODEL = "gpt-5-scripted"
USAGE: Json = {
    "prompt_tokens": 1_000,
    "prompt_unit_price": "1.25",
    "prompt_price_unit": "0.000001",
    "prompt_price": "0.00125",
    "completion_tokens": 5,
    "completion_unit_price": "10",
    "completion_price_unit": "0.000001",
    "completion_price": "0.00005",
    "total_tokens": 1_005,
    "total_price": "0.0013",
    "currency": "USD",
    "latency": 0.5,
}


def says(*texts: str, finish_reason: str | None = "stop", usage: Json | None = USAGE) -> list[Any]:
    """A turn of text chunks, then a last chunk with usage and finish reason."""
    return [*(chunk(MODEL, text=text) for text in texts), chunk(MODEL, usage=usage, finish_reason=finish_reason)]


def calls(*wanted: tuple[str, Mapping[str, Any] | str], text: str = "", **last: Any) -> list[Any]:  # noqa: ANN401
    """A turn that calls tools, all whole in the last chunk; with ids call_1, call_2 and so on."""
    entries = [
        tool_call(f"call_{number}", name, arguments if isinstance(arguments, str) else json.dumps(arguments))
        for number, (name, arguments) in enumerate(wanted, start=1)
    ]
    final = chunk(MODEL, tool_calls=entries, **{"usage": USAGE, "finish_reason": "tool_calls", **last})
    return [*([chunk(MODEL, text=text)] if text else []), final]


def fails(error_type: str, message: str = "no reason given", after: Sequence[Any] = ()) -> list[Any]:
    """A turn that fails, worded as Dify passes a provider's error on."""
    details = {"args": {}, "error_type": error_type, "message": message}
    return [*after, CallFails(f"PluginInvokeError: {json.dumps(details)}")]


def message(kind: str, meta: Json | None = None, **body: Any) -> Json:  # noqa: ANN401 - the message's fields
    """A message of a tool."""
    return {"type": kind, "message": body, "meta": meta}


def text_message(text: str) -> Json:
    return message("text", text=text)


def json_message(value: object) -> Json:
    return message("json", json_object=value)


def replies(*messages: Json | str) -> Handler:
    """A tool that always says this."""

    def handler(_request: Json) -> Iterator[Json]:
        yield from (text_message(item) if isinstance(item, str) else item for item in messages)

    return handler


def breaks(message: str, after: Sequence[Json] = ()) -> Handler:
    """A tool that fails, after it said something or nothing."""

    def handler(_request: Json) -> Iterator[Json]:
        yield from after
        raise CallFails(message)

    return handler


def parameter(name: str, kind: str = "string", **more: Any) -> Json:  # noqa: ANN401
    """A tool parameter that the model fills in, as Dify describes it."""
    label = {"en_US": name}
    described = {"name": name, "label": label, "human_description": label, "type": kind, "form": "llm"}
    return {**described, "llm_description": "", "required": False, "default": None, "options": None, **more}


def tool(name: str, *parameters: Json, provider: str = "acme/tools/tools", **more: Any) -> Json:  # noqa: ANN401
    """A tool dict as Dify sends it."""
    return {
        "identity": {"author": "acme", "name": name, "label": {"en_US": name}, "provider": provider, "icon": ""},
        "parameters": list(parameters),
        "description": {"human": {"en_US": name}, "llm": f"What {name} does."},
        "output_schema": {},
        "has_runtime_parameters": False,
        "runtime_parameters": {},
        "credential_id": None,
        "provider_type": "builtin",
        **more,
    }


def model(*, features: Sequence[str] | None = ("tool-call", "multi-tool-call", "vision"), **more: Any) -> Json:  # noqa: ANN401
    """The ``model`` parameter as the web and the server put it together; ``features=None`` sends no entity."""
    entity = None
    if features is not None:
        entity = {
            "model": MODEL,
            "label": {"en_US": MODEL},
            "model_type": "llm",
            "features": list(features),
            "fetch_from": "predefined-model",
            "model_properties": {"mode": "chat", "context_size": more.pop("context_size", 400_000)},
            "parameter_rules": [],
        }
    return {
        "provider": "langgenius/openai/openai",
        "model": MODEL,
        "model_type": "llm",
        "mode": "chat",
        "completion_params": {},
        "type": "model-selector",
        "history_prompt_messages": [],
        "entity": entity,
        **more,
    }


KNOWLEDGE: Json = {
    "metadata": {
        "_source": "knowledge",
        "dataset_id": "ds1",
        "dataset_name": "Handbook",
        "document_id": "doc1",
        "document_name": "leave.md",
        "data_source_type": "upload_file",
        "segment_id": "seg1",
        "retriever_from": "workflow",
        "score": 0.87,
        "child_chunks": [],
        "segment_hit_count": 3,
        "segment_word_count": 12,
        "segment_position": 2,
        "segment_index_node_hash": "abc",
        "doc_metadata": {"author": "A"},
        "position": 1,
    },
    "title": "Leave",
    "files": [],
    "content": "30 days.",
    "summary": None,
}
"""A result of the knowledge node, as it stands in ``context``."""

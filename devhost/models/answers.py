"""The calls that a model answers: a plain one, and one for structured output, as Dify's API does them.

In: a backend and the plugin's request. Out: the answer's parts as the API sends them. Requests pass through the
daemon's decoding first.
"""

import json
from collections.abc import Iterator

from devhost.models.backend import ModelBackend
from devhost.models.request import ModelRequest, OpaqueBodyPolicy, decode_model_request
from devhost.protocol import requests
from devhost.protocol.failures import ApiCallError
from devhost.protocol.golang.shapes import Record
from devhost.protocol.wire import JsonObject


def model_answer(
    model: ModelBackend, record: Record, request: JsonObject, opaque_body: OpaqueBodyPolicy
) -> Iterator[JsonObject]:
    return _chunks(model, decode_model_request(request, opaque_body, record), opaque_body)


def structured_answer(model: ModelBackend, request: JsonObject, opaque_body: OpaqueBodyPolicy) -> Iterator[JsonObject]:
    """The model's chunks, and a last one with the JSON object in their joined texts."""
    decoded = decode_model_request(request, opaque_body, requests.STRUCTURED)
    return _structured(_chunks(model, decoded, opaque_body))


def _chunks(model: ModelBackend, request: ModelRequest, opaque_body: OpaqueBodyPolicy) -> Iterator[JsonObject]:
    for chunk in model.invoke(request):
        match chunk:
            case {"delta": {"message": dict(message)}} if opaque_body == "drop":
                message.pop("opaque_body", None)
        yield chunk


def _structured(chunks: Iterator[JsonObject]) -> Iterator[JsonObject]:
    texts: list[str] = []
    last: JsonObject | None = None
    for chunk in chunks:
        texts.append(str(chunk["delta"]["message"]["content"]))
        last = chunk
        yield {**chunk, "structured_output": None}
    try:
        read = json.loads("".join(texts))
    except ValueError:
        read = None
    if last is None or not isinstance(read, dict):
        raise ApiCallError.stream_error("Failed to parse structured output: the answer is not a JSON object")
    message = {**last["delta"]["message"], "content": "", "tool_calls": []}
    yield {**last, "delta": {**last["delta"], "message": message}, "structured_output": read}

"""What both APIs of OpenAI take alike: parts of a prompt, and formats of an answer."""

import json

from devhost.models.backend import MediaPart
from devhost.models.openai_api.provider import refused
from devhost.protocol.wire import JsonObject


def address(part: MediaPart) -> str:
    """Its URL, or a data URL with its bytes."""
    return part.url or data_url(part)


def data_url(part: MediaPart) -> str:
    return f"data:{part.mime_type};base64,{part.base64_data}"


def filename(part: MediaPart) -> str:
    return part.filename or f"file.{part.format}"


# The parameters `response_format` and `json_schema` as a format object.


def named_schema(params: JsonObject) -> JsonObject:
    """The node's JSON text: `{"name": …, "schema": …}`, or a bare schema."""
    text = params.get("json_schema")
    try:
        given = json.loads(text) if text else None
    except ValueError as error:
        raise refused(f"json_schema is not valid JSON: {error}") from error
    if not isinstance(given, dict):
        raise refused("response_format=json_schema needs json_schema, a JSON object")
    return given if "schema" in given else {"name": "answer", "schema": given}

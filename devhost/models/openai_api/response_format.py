"""The parameters `response_format` and `json_schema` as a format object."""

import json

from devhost.models.provider.failures import refused
from devhost.protocol.wire import JsonObject


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

"""A plugin's request for a tool call, decoded as the daemon and then Dify's API decode it."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, StrictStr, ValidationError

from devhost.protocol import requests
from devhost.protocol.failures import ApiCallError
from devhost.protocol.wire import JsonObject
from devhost.text.yaml_file import describe


class ToolRequest(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    tool_type: Literal["builtin", "workflow", "api", "mcp"]
    provider: StrictStr
    tool: StrictStr
    tool_parameters: dict[str, Any]
    credential_id: StrictStr | None = None


def decode_tool_request(request: JsonObject) -> ToolRequest:
    """RefusedCallError in the daemon's words, or ApiCallError in those of the API."""
    try:
        return ToolRequest.model_validate(requests.to_the_api(requests.TOOL, request))
    except ValidationError as error:
        raise ApiCallError.invalid(f"invalid payload: {describe(error)}") from error

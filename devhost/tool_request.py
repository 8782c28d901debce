"""A plugin's request for a tool call, decoded as strictly as the daemon and Dify decode it."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, StrictStr, ValidationError

from devhost.errors import RefusedCallError
from devhost.wire import JsonObject
from devhost.yaml_file import describe


class ToolRequest(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    tool_type: Literal["builtin", "workflow", "api", "mcp"]
    provider: StrictStr
    tool: StrictStr
    tool_parameters: dict[str, Any]
    credential_id: StrictStr | None = None


def decode_tool_request(request: JsonObject) -> ToolRequest:
    try:
        return ToolRequest.model_validate(request)
    except ValidationError as error:
        raise RefusedCallError(f"invoke tool request refused: {describe(error)}") from error

"""The SDK's entities as unit tests build them."""

from typing import Any

from dify_plugin.entities.model.message import AssistantPromptMessage
from dify_plugin.file.file import File

from internal.call import Result, ToolCall
from internal.node.tools import Tool, Toolbox, ToolParameter, build_toolbox, name_files
from tests.support.wire import parameter, tool


def sdk_call(call_id: str | None, name: str | None, arguments: str | None = "{}") -> AssistantPromptMessage.ToolCall:
    """One entry of a chunk's tool calls; the SDK reads a null as ""."""
    function = {"name": name, "arguments": arguments}
    return AssistantPromptMessage.ToolCall.model_validate({"id": call_id, "type": "function", "function": function})


def file(name: str | None = "a.png", kind: str = "image", **more: Any) -> File:  # noqa: ANN401 - any field of the SDK's
    return File.model_validate({"url": "http://host.test/a", "filename": name, "type": kind, **more})


def toolbox_of(*parameters: dict[str, Any], files: tuple[File, ...] = (), **more: Any) -> Toolbox:  # noqa: ANN401 - as above
    """A toolbox with one tool, ``search``."""
    return build_toolbox([tool("search", *parameters, **more)], files=name_files(files))


def tool_of(*parameters: dict[str, Any], **more: Any) -> Tool:  # noqa: ANN401 - as above
    return toolbox_of(*parameters, **more).tools["search"]


def parameter_of(kind: str = "string", **more: Any) -> ToolParameter:  # noqa: ANN401 - as above
    """The parameter ``x``, read."""
    return tool_of(parameter("x", kind, **more)).parameters["x"]


def ended(call: ToolCall, text: str) -> Result:
    """A call whose result is this text, whatever became of it."""
    return Result(call, text, text)

"""The SDK's entities as unit tests build them."""

from typing import Any

from dify_plugin.entities.model.message import AssistantPromptMessage, PromptMessage
from dify_plugin.file.file import File

from internal.call import CallStatus, RejectedCall, ToolCall, ToolOutcome
from internal.node.tools import Tool, Toolbox, ToolParameter, build_toolbox, name_files
from internal.transcript.steps import Content, EarlierMessage, Round
from internal.transcript.transcript import Transcript
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


def outcome_of(call: ToolCall, text: str) -> ToolOutcome:
    """The end of a call whose result is this text in prompts, in records and as a whole, whatever became of it."""
    judged = RejectedCall(call, text)
    return ToolOutcome(judged, CallStatus.OK, text, whole=text, prompt_text=text, record_text=text)


def conversation(*messages: PromptMessage, instruction: str = "") -> Transcript:
    """A transcript that begins with these messages of the node's memory; the last one of the user's is the question."""
    return Transcript(instruction, map(EarlierMessage, messages))


def round_of(*outcomes: ToolOutcome, content: Content = "", opaque_body: object = None) -> Round:
    return Round(content, "", outcomes, opaque_body)

"""The shape of a request to /v1/responses, as far as devhost has any use for it; nothing else gets in."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, StrictBool, StrictFloat, StrictInt, StrictStr, Tag


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


type Status = Literal["in_progress", "completed", "incomplete"]


class InputText(Strict):
    type: Literal["input_text"]
    text: StrictStr


class InputImage(Strict):
    type: Literal["input_image"]
    image_url: Annotated[StrictStr, Field(pattern=r"^(https?://|data:image/[a-z+.-]+;base64,)")]
    detail: Literal["low", "high", "auto", "original"] = "auto"


class InputFile(Strict):
    type: Literal["input_file"]
    filename: StrictStr | None = None
    file_data: Annotated[StrictStr, Field(pattern=r"^data:[^;]+;base64,")] | None = None
    file_url: StrictStr | None = None


class OutputText(Strict):
    type: Literal["output_text"]
    text: StrictStr
    annotations: list[Any] = []
    logprobs: list[Any] = []


class OutputRefusal(Strict):
    type: Literal["refusal"]
    refusal: StrictStr


type InputPart = Annotated[InputText | InputImage | InputFile, Field(discriminator="type")]
type AnyPart = Annotated[InputText | InputImage | InputFile | OutputText | OutputRefusal, Field(discriminator="type")]


class Message(Strict):
    type: Literal["message"] = "message"
    role: Literal["user", "assistant", "system", "developer"]
    content: StrictStr | list[AnyPart]
    id: StrictStr | None = None
    status: Status | None = None
    phase: Literal["commentary", "final_answer"] | None = None


class FunctionCall(Strict):
    type: Literal["function_call"]
    call_id: Annotated[StrictStr, Field(min_length=1)]
    name: StrictStr
    arguments: StrictStr
    id: StrictStr | None = None
    status: Status | None = None


class FunctionCallOutput(Strict):
    type: Literal["function_call_output"]
    call_id: Annotated[StrictStr, Field(min_length=1)]
    output: StrictStr | list[InputPart]


class SummaryText(Strict):
    type: Literal["summary_text"]
    text: StrictStr


class ReasoningItem(Strict):
    type: Literal["reasoning"]
    id: StrictStr
    summary: list[SummaryText]
    encrypted_content: StrictStr | None = None
    status: Status | None = None


def _kind(item: Any) -> Any:  # noqa: ANN401 - any JSON; a message may leave its type out
    return item.get("type", "message" if "role" in item else None) if isinstance(item, dict) else None


type InputItem = Annotated[
    Annotated[Message, Tag("message")]
    | Annotated[FunctionCall, Tag("function_call")]
    | Annotated[FunctionCallOutput, Tag("function_call_output")]
    | Annotated[ReasoningItem, Tag("reasoning")],
    Discriminator(_kind),
]


class FunctionTool(Strict):
    type: Literal["function"]
    name: StrictStr
    parameters: dict[str, Any] | None
    strict: StrictBool | None
    description: StrictStr | None = None


class Reasoning(Strict):
    effort: StrictStr | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None
    mode: Literal["standard", "pro"] | None = None
    context: Literal["auto", "current_turn", "all_turns"] | None = None


class JsonSchemaFormat(Strict):
    type: Literal["json_schema"]
    name: StrictStr
    schema_: Annotated[dict[str, Any], Field(alias="schema")]
    strict: StrictBool | None = None


class PlainFormat(Strict):
    type: Literal["text", "json_object"]


class TextConfig(Strict):
    verbosity: Literal["low", "medium", "high"] | None = None
    format: Annotated[JsonSchemaFormat | PlainFormat, Field(discriminator="type")] | None = None


class ResponsesRequest(Strict):
    model: StrictStr
    input: list[InputItem]
    stream: Literal[True]
    store: StrictBool = True
    include: list[Literal["reasoning.encrypted_content"]] = []
    tools: list[FunctionTool] = []
    tool_choice: Literal["auto", "none", "required"] = "auto"
    max_output_tokens: Annotated[StrictInt, Field(ge=16)] | None = None
    reasoning: Reasoning | None = None
    text: TextConfig | None = None
    temperature: StrictFloat | StrictInt | None = None
    top_p: StrictFloat | StrictInt | None = None
    service_tier: Literal["auto", "default", "flex", "priority"] | None = None

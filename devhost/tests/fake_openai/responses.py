"""The Responses API: the shape of a request, what is refused of a well-formed one, and a turn as events.

The shape goes as far as devhost has any use for it; nothing else gets in.
"""

from collections.abc import Iterator, Sequence
from itertools import count, pairwise
from typing import Annotated, Any, Literal
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Discriminator, Field, StrictBool, StrictFloat, StrictInt, StrictStr, Tag

from fake_openai.refusals import Profile, Refusal, check_arguments, check_name, check_tool, profile, unsupported
from fake_openai.turns import Call, Turn


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


# What is refused, given the items that the server issued before.

type Issued = list[list[dict[str, Any]]]
"""The output items of every response so far."""


def check_request(request: ResponsesRequest, issued: Issued) -> None:
    _check_parameters(request, profile(request.model))
    for position, tool in enumerate(request.tools):
        check_tool(tool.name, tool.parameters, f"tools[{position}]")
    for position, item in enumerate(request.input):
        _check_item(item, f"input[{position}]")
    _check_calls(request.input)
    _check_reasoning(request.input, issued)


def _check_parameters(request: ResponsesRequest, model: Profile) -> None:
    effort = (request.reasoning and request.reasoning.effort) or model.default_effort
    if model.reasons and effort != "none":
        for name in ("temperature", "top_p"):
            if getattr(request, name) is not None:
                raise unsupported(name)
    if request.reasoning is not None and not model.reasons:
        raise unsupported("reasoning.effort")
    if model.reasons and effort not in model.efforts:
        said = f"Unsupported value: '{effort}' is not supported with the '{request.model}' model."
        raise Refusal(said, param="reasoning.effort", code="unsupported_value")
    if request.include and not model.reasons:
        raise Refusal("Encrypted content is not supported with this model.", param="include")


def _check_item(item: InputItem, place: str) -> None:
    match item:
        case Message(role=role, content=list() as parts):
            for number, part in enumerate(parts):
                if (role == "assistant") != isinstance(part, OutputText | OutputRefusal):
                    param = f"{place}.content[{number}]"
                    raise Refusal(f"Invalid value: '{part.type}'.", param=param, code="invalid_value")
        case FunctionCall():
            check_name(item.name, f"{place}.name")
            check_arguments(item.arguments, f"{place}.arguments")
        case _:
            pass


def _check_calls(items: Sequence[InputItem]) -> None:
    called: set[str] = set()
    answered: set[str] = set()
    for position, item in enumerate(items):
        if isinstance(item, FunctionCall):
            if item.call_id in called:
                raise Refusal(f"Duplicate function call with call_id {item.call_id}.", param=f"input[{position}]")
            called.add(item.call_id)
        elif isinstance(item, FunctionCallOutput):
            if item.call_id not in called:
                said = f"No tool call found for function call output with call_id {item.call_id}."
                raise Refusal(said, param="input")
            if item.call_id in answered:
                raise Refusal(f"Duplicate output for function call {item.call_id}.", param=f"input[{position}]")
            answered.add(item.call_id)
    for call_id in sorted(called - answered):
        raise Refusal(f"No tool output found for function call {call_id}.", param="input")


def _check_reasoning(items: Sequence[InputItem], issued: Issued) -> None:
    """Reasoning comes back sealed and whole, and with what it led to; what it led to, not without it."""
    seals = {item["id"]: item["encrypted_content"] for output in issued for item in output if "summary" in item}
    present = {item.id for item in items if isinstance(item, ReasoningItem)}
    for position, item in enumerate(items):
        if isinstance(item, ReasoningItem):
            if item.encrypted_content is None:
                said = f"Item with id '{item.id}' not found. Items are not persisted when `store` is set to false."
                raise Refusal(said, status=404, param="input")
            if seals.get(item.id) != item.encrypted_content:
                said = f"The encrypted content for item {item.id} could not be verified."
                raise Refusal(said, code="invalid_encrypted_content")
            if position + 1 == len(items) or getattr(items[position + 1], "id", None) is None:
                said = f"Item '{item.id}' of type 'reasoning' was provided without its required following item."
                raise Refusal(said, param="input")
        for reasoning, item_id in _led_to(issued):
            if getattr(item, "id", None) == item_id and reasoning not in present:
                said = f"Item '{item_id}' was provided without its required 'reasoning' item: '{reasoning}'."
                raise Refusal(said, param="input")


def _led_to(issued: Issued) -> list[tuple[str, str]]:
    """Pairs of a reasoning item and an item of the same response."""
    return [
        (before["id"], item["id"])
        for output in issued
        for before, item in pairwise(output)
        if before["type"] == "reasoning"
    ]


# A turn as events.

type Event = dict[str, Any]


class ResponseInTheMaking:
    def __init__(self, request: ResponsesRequest, turn: Turn) -> None:
        self.output: list[dict[str, Any]] = []
        self._id = _id("resp")
        self._request = request
        self._turn = turn
        self._numbers = count()

    def events(self) -> Iterator[Event]:
        yield self._event("response.created", response=self._response("in_progress"))
        yield self._event("response.in_progress", response=self._response("in_progress"))
        if self._turn.summary:
            yield from self._reasoning(self._turn.summary)
        if self._turn.text:
            yield from self._message(self._turn.text)
        for call in self._turn.calls:
            yield from self._function_call(call)
        if self._turn.error is not None:
            code, message = self._turn.error
            failed = {**self._response("failed"), "error": {"code": code, "message": message}}
            yield self._event("response.failed", response=failed)
        elif self._turn.incomplete is not None:
            cut = {**self._response("incomplete"), "incomplete_details": {"reason": self._turn.incomplete}}
            yield self._event("response.incomplete", response={**cut, "usage": self._usage()})
        else:
            yield self._event("response.completed", response={**self._response("completed"), "usage": self._usage()})

    def _reasoning(self, summary: str) -> Iterator[Event]:
        index, item_id = len(self.output), _id("rs")
        sealed = f"sealed-{uuid4().hex}=" if self._request.include else None
        item: dict[str, Any] = {"id": item_id, "type": "reasoning", "summary": []}
        yield self._event("response.output_item.added", output_index=index, item=item)
        parts: list[dict[str, Any]] = []
        wants_summary = self._request.reasoning is not None and self._request.reasoning.summary is not None
        for number, paragraph in enumerate(summary.split("\n\n") if wants_summary else ()):
            place = {"item_id": item_id, "output_index": index, "summary_index": number}
            part = {"type": "summary_text", "text": ""}
            yield self._event("response.reasoning_summary_part.added", **place, part=part)
            for piece in self._turn.pieces(paragraph):
                yield self._event("response.reasoning_summary_text.delta", **place, delta=piece)
            yield self._event("response.reasoning_summary_text.done", **place, text=paragraph)
            parts.append({"type": "summary_text", "text": paragraph})
            yield self._event("response.reasoning_summary_part.done", **place, part=parts[-1])
        done = {**item, "summary": parts, "encrypted_content": sealed}
        yield self._done(index, done)

    def _message(self, text: str) -> Iterator[Event]:
        index, item_id = len(self.output), _id("msg")
        phase = "commentary" if self._turn.calls else "final_answer"
        item = {"id": item_id, "type": "message", "role": "assistant", "status": "in_progress", "phase": phase}
        yield self._event("response.output_item.added", output_index=index, item={**item, "content": []})
        place = {"item_id": item_id, "output_index": index, "content_index": 0}
        part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        yield self._event("response.content_part.added", **place, part=part)
        for piece in self._turn.pieces(text):
            yield self._event("response.output_text.delta", **place, delta=piece, logprobs=[])
        yield self._event("response.output_text.done", **place, text=text, logprobs=[])
        yield self._event("response.content_part.done", **place, part={**part, "text": text})
        yield self._done(index, {**item, "status": self._status, "content": [{**part, "text": text}]})

    def _function_call(self, call: Call) -> Iterator[Event]:
        index, item_id = len(self.output), _id("fc")
        item = {"id": item_id, "type": "function_call", "call_id": call.id or _id("call"), "name": call.name}
        begun = {**item, "arguments": "", "status": "in_progress"}
        yield self._event("response.output_item.added", output_index=index, item=begun)
        place = {"item_id": item_id, "output_index": index}
        for piece in self._turn.pieces(call.arguments_text):
            yield self._event("response.function_call_arguments.delta", **place, delta=piece)
        arguments = call.arguments_text
        yield self._event("response.function_call_arguments.done", **place, arguments=arguments, name=call.name)
        yield self._done(index, {**item, "arguments": arguments, "status": self._status})

    def _done(self, index: int, item: dict[str, Any]) -> Event:
        self.output.append(item)
        return self._event("response.output_item.done", output_index=index, item=item)

    @property
    def _status(self) -> str:
        return "incomplete" if self._turn.incomplete else "completed"

    def _event(self, kind: str, **fields: object) -> Event:
        return {"type": kind, "sequence_number": next(self._numbers), **fields}

    def _response(self, status: str) -> dict[str, Any]:
        return {
            "id": self._id,
            "object": "response",
            "created_at": 1_790_000_000,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "model": self._request.model,
            "output": list(self.output),
            "parallel_tool_calls": True,
            "tool_choice": self._request.tool_choice,
            "tools": [],
            "usage": None,
        }

    def _usage(self) -> dict[str, Any] | None:
        tokens = self._turn.tokens
        if tokens is None:
            return None
        return {
            "input_tokens": tokens.prompt,
            "input_tokens_details": {"cached_tokens": tokens.cached, "cache_write_tokens": tokens.written},
            "output_tokens": tokens.completion,
            "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
            "total_tokens": tokens.prompt + tokens.completion,
        }


def _id(prefix: str) -> str:
    return f"{prefix}_{uuid4().hex}"

"""One answer of the scripted model, as a script describes it. In: plain data. Out: a checked, frozen `Turn`."""

from collections.abc import Callable, Iterator
from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    NonNegativeInt,
    PositiveInt,
    ValidationError,
    WrapValidator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from devhost.protocol.failures import Fault
from devhost.text.json_value import json_value

LONGEST_DELAY = 3_600
"""Seconds; a longer delay is taken for a mistake."""


def one_sentence(sentence: str) -> WrapValidator:
    """One sentence instead of pydantic's error for each branch of the union."""

    def validate(value: object, handler: Callable[[object], object]) -> object:
        try:
            return handler(value)
        except ValidationError as error:
            raise PydanticCustomError("wrong_type", "{sentence}", {"sentence": sentence}) from error

    return WrapValidator(validate)


type Words = Annotated[str, one_sentence("should be a text: put yes, no and numbers in quotes")]
"""YAML reads `no` as false and `1` as a number."""
type _Json = Annotated[JsonValue, BeforeValidator(json_value)]
type _Number = Annotated[float | str | None, one_sentence("should be a number, or a text")]


class Scripted(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ScriptedCall(Scripted):
    name: Words
    id: Words = ""
    arguments: Annotated[
        dict[str, JsonValue] | str, one_sentence("should be a mapping, or a text"), BeforeValidator(json_value)
    ] = Field(default_factory=dict[str, JsonValue])
    """A mapping becomes JSON; a string is sent unchanged, even if it is not valid JSON."""


class ScriptedError(Scripted):
    """An error of the provider, by its type and message; or any other one by all the words that the plugin reads."""

    type: str = ""
    message: str = ""
    words: str = ""
    after_chunks: NonNegativeInt = 0

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if bool(self.words) == bool(self.type):
            raise PydanticCustomError("error_form", "needs a type and a message, or the words alone")
        return self


class ScriptedUsage(Scripted):
    """The fields of LLMUsage that the script sets; the others are estimated or zero."""

    prompt_tokens: NonNegativeInt | None = None
    completion_tokens: NonNegativeInt | None = None
    total_tokens: NonNegativeInt | None = None
    prompt_unit_price: _Number = None
    prompt_price_unit: _Number = None
    prompt_price: _Number = None
    completion_unit_price: _Number = None
    completion_price_unit: _Number = None
    completion_price: _Number = None
    total_price: _Number = None
    currency: str | None = None
    latency: float | None = None


class Turn(Scripted):
    thought: Words = ""
    text: Annotated[str | tuple[str, ...], one_sentence("should be a text, or a list of texts")] = ""
    tool_calls: tuple[ScriptedCall, ...] = ()
    call_chunking: Literal["whole", "per_call", "fragments", "snapshots"] = "whole"
    chunk_size: PositiveInt = 12
    delay: Annotated[float, Field(ge=0, le=LONGEST_DELAY, allow_inf_nan=False)] = 0.0
    """Seconds."""
    finish_reason: str | None = None
    usage: ScriptedUsage | None = ScriptedUsage()
    error: ScriptedError | None = None
    api_fails: Fault | None = None
    """What Dify's API does in place of answering: see `devhost.protocol.failures`."""
    opaque_body: _Json = None
    when: Words | None = None
    """A text that the last message of the prompt contains."""
    when_system: Words | None = None
    """A text that the system message contains, such as a sentence of the instruction."""
    when_result: Words | None = None
    """A text that a tool result since the model's last answer contains."""
    when_asked: Words | None = None
    """A text that a user message of the prompt contains."""
    model: Words | None = None
    """The model that is called."""
    as_written: bool = False
    """`{{query}}` and `{{tool_results}}` are not replaced."""


def _joined(turns: object, within: tuple[int, ...] = ()) -> Iterator[object]:
    """The turns of a list in which turns and lists of turns stand: what YAML's aliases insert."""
    if not isinstance(turns, list | tuple):
        yield turns
    elif id(turns) in within:
        raise PydanticCustomError("circle", "contains itself")
    else:
        for turn in turns:
            yield from _joined(turn, (*within, id(turns)))


def _flat(turns: object) -> object:
    return list(_joined(turns)) if isinstance(turns, list | tuple) else turns


type Turns = Annotated[tuple[Turn, ...], BeforeValidator(_flat)]
type SomeTurns = Annotated[tuple[Turn, ...], Field(min_length=1), BeforeValidator(_flat)]

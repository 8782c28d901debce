"""script.yaml as a value: what is asked, with which parameters, and how the scripted model answers, turn by turn.

Every mistake in the file is one sentence with the key, the turn and the file.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    NonNegativeInt,
    PositiveInt,
    ValidationError,
    ValidationInfo,
    WrapValidator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from devhost.errors import ScriptError
from devhost.models.backend import DEFAULT_FEATURES
from devhost.protocol.failures import Fault
from devhost.text.json_value import json_value
from devhost.text.yaml_file import load_yaml

LONGEST_DELAY = 3_600
"""Seconds; a longer delay is taken for a mistake."""


def _one_sentence(sentence: str) -> WrapValidator:
    """One sentence instead of pydantic's error for each branch of the union."""

    def validate(value: object, handler: Callable[[object], object]) -> object:
        try:
            return handler(value)
        except ValidationError as error:
            raise PydanticCustomError("wrong_type", "{sentence}", {"sentence": sentence}) from error

    return WrapValidator(validate)


type _Json = Annotated[JsonValue, BeforeValidator(json_value)]
type _JsonObject = Annotated[dict[str, Any], BeforeValidator(json_value)]
type _Number = Annotated[float | str | None, _one_sentence("should be a number, or a text")]


class _Scripted(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ScriptedCall(_Scripted):
    name: str
    id: str = ""
    arguments: Annotated[
        dict[str, JsonValue] | str, _one_sentence("should be a mapping, or a text"), BeforeValidator(json_value)
    ] = Field(default_factory=dict[str, JsonValue])
    """A mapping becomes JSON; a string is sent unchanged, even if it is not valid JSON."""


class ScriptedError(_Scripted):
    type: str
    message: str
    after_chunks: NonNegativeInt = 0


class ScriptedUsage(_Scripted):
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


class Turn(_Scripted):
    thought: str = ""
    text: Annotated[str | tuple[str, ...], _one_sentence("should be a text, or a list of texts")] = ""
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
    when: str | None = None
    """A text that the last message of the prompt contains."""
    model: str | None = None
    """The model that is called."""


def _beside_the_script(path: Path, validated: ValidationInfo) -> Path:
    return (validated.context or Path()) / path


type _Files = tuple[Annotated[Path, AfterValidator(_beside_the_script)], ...]
"""Paths, relative to the script's folder."""


class FollowUp(_Scripted):
    """What the user says later in the conversation, and how the model answers."""

    query: Annotated[str, _one_sentence("should be a text: put yes and no in quotes")]
    approval: Annotated[str | None, _one_sentence("should be a text: put yes and no in quotes")] = None
    """The answer to calls that wait, if it is not the query."""
    files: _Files = ()
    """What the user sends with it."""
    turns: Annotated[tuple[Turn, ...], Field(min_length=1)]


class ScriptedModelCard(_Scripted):
    name: str = "scripted-gpt-5"
    features: tuple[str, ...] = DEFAULT_FEATURES
    context_size: PositiveInt = 400_000


class Script(_Scripted):
    description: str = ""
    query: str
    files: _Files = ()
    """What the user sends with the query."""
    strategy: str | None = None
    """The one it was written for; the command line may name another."""
    params: _JsonObject = Field(default_factory=dict)
    variables: _JsonObject = Field(default_factory=dict)
    """Of the workflow around the node, by `node.name`: what templates and selectors in `params` refer to."""
    conversation_variables: tuple[str, ...] = ()
    """Variables of the strategy that the app assigns to conversation variables, whose size is limited."""
    model: ScriptedModelCard = ScriptedModelCard()
    turns: Annotated[tuple[Turn, ...], Field(min_length=1)]
    then: tuple[FollowUp, ...] = ()
    """The rest of the conversation, in order."""
    otherwise: tuple[Turn, ...] | None = None
    api_fails: dict[str, Fault] = Field(default_factory=dict)
    """By tool, what Dify's API does each time it is called."""

    @classmethod
    def read(cls, file: Path) -> Self:
        data = load_yaml(file)
        try:
            return cls.model_validate(data, context=file.parent)
        except ValidationError as error:
            raise ScriptError(f"{file}: {_sentences(error)}") from error

    def turns_for(self, query: str, asked: int = 0) -> tuple[Turn, ...]:
        """The turns for what the script's user says, or those for anything else.

        `asked`: how often the conversation had this question before, because the user may say yes twice.
        """
        said = [(self.query, self.turns), *((each.query, each.turns) for each in self.then)]
        written = [turns for asked_for, turns in said if asked_for == query]
        if written:
            return written[min(asked, len(written) - 1)]
        return self.turns if self.otherwise is None else self.otherwise


def read_turns(turns: object) -> tuple[Turn, ...]:
    """Turns given as plain data, by a test for instance."""
    try:
        return Script.model_validate({"query": "", "turns": turns}).turns
    except ValidationError as error:
        raise ScriptError(_sentences(error)) from error


def _sentences(error: ValidationError) -> str:
    sentences = []
    for finding in _findings(error):
        *path, key = _readable(finding["loc"])
        where = f"{', '.join(path)}: " if path else ""
        if finding["type"] == "extra_forbidden":
            sentences.append(f"{where}unknown key {key!r}")
        else:
            sentences.append(f"{where}{key}: {finding['msg']}")
    return "; ".join(sentences)


def _findings(error: ValidationError) -> list[ErrorDetails]:
    """Turns with mistakes are not counted, so pydantic also calls the list too short: that error is left out."""
    findings = error.errors()

    def holds_another(location: tuple[int | str, ...]) -> bool:
        return any(other["loc"][: len(location)] == location != other["loc"] for other in findings)

    return [finding for finding in findings if finding["type"] != "too_short" or not holds_another(finding["loc"])]


def _readable(location: tuple[int | str, ...]) -> list[str]:
    """`("turns", 1, "tool_calls", 0, "nmae")` → turn 2, tool call 1, nmae."""
    names = {"turns": "turn", "otherwise": "turn of otherwise", "tool_calls": "tool call"}
    path: list[str] = []
    for part in location:
        if isinstance(part, int) and path:
            path[-1] = f"{names.get(path[-1], path[-1])} {part + 1}"
        else:
            path.append(str(part))
    return path

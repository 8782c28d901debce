"""Pydantic models for the parts of a script: a model's turns, and tools that answer from a recording."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Self

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
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from devhost.errors import ParameterError, ScriptError
from devhost.limits import PositivePrice
from devhost.models.backend import DEFAULT_FEATURES
from devhost.protocol.failures import Fault
from devhost.reach import may_fetch, within_reach
from devhost.text import json_value, worded
from devhost.words import misspelt


def one_sentence(sentence: str) -> WrapValidator:
    """Returns a validator that reports one sentence instead of one pydantic error for each branch of a union."""

    def validate(value: object, handler: Callable[[object], object]) -> object:
        try:
            return handler(value)
        except ValidationError as error:
            raise PydanticCustomError("wrong_type", "{sentence}", {"sentence": sentence}) from error

    return WrapValidator(validate)


def listed(value: object) -> object:
    if isinstance(value, str | dict):
        return [value]
    return value


type Words = Annotated[str, one_sentence("should be a text: put yes, no and numbers in quotes")]
"""A text. YAML reads an unquoted `no` as false and `1` as a number, so these need quotes."""
type Texts = Annotated[tuple[Words, ...], one_sentence("should be a text, or a list of texts"), BeforeValidator(listed)]
type _Price = Annotated[float | str, one_sentence("should be a number, or a text"), AfterValidator(str)]


class ScriptModel(BaseModel):
    """The base of everything that a person writes in a script. An unknown key is an error that lists the known keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, written: Any) -> Any:  # noqa: ANN401 - of any type
        known = [field.alias or name for name, field in cls.model_fields.items()]
        if unknown := [key for key in written if key not in known] if isinstance(written, dict) else []:
            said = {"unknown": ", ".join(misspelt(key, known) for key in unknown), "known": ", ".join(known)}
            raise PydanticCustomError("unknown_key", "unknown key {unknown}; there are: {known}", said)
        return written


class ScriptedCall(ScriptModel):
    name: Words
    id: Words = ""
    arguments: Annotated[
        dict[str, JsonValue] | str, one_sentence("should be a mapping, or a text"), BeforeValidator(json_value)
    ] = Field(default_factory=dict[str, JsonValue])
    """A mapping becomes JSON; a string is sent unchanged, even if it is not valid JSON."""

    @property
    def arguments_text(self) -> str:
        if isinstance(self.arguments, str):
            return self.arguments
        return json.dumps(self.arguments, ensure_ascii=False)


class ScriptedError(ScriptModel):
    """An error that a turn raises after `after_chunks` chunks.

    A provider's error has a type and a message. Any other error has the exact `words` that the plugin reads.
    """

    type: str = ""
    message: str = ""
    words: str = ""
    after_chunks: NonNegativeInt = 0

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if bool(self.words) == bool(self.type):
            raise PydanticCustomError("error_form", "needs a type and a message, or the words alone")
        return self


class ScriptedUsage(ScriptModel):
    """The fields of LLMUsage. A count that is `None` is estimated."""

    prompt_tokens: NonNegativeInt | None = None
    completion_tokens: NonNegativeInt | None = None
    total_tokens: NonNegativeInt | None = None
    prompt_unit_price: _Price = "0"
    prompt_price_unit: _Price = "0"
    prompt_price: _Price = "0"
    completion_unit_price: _Price = "0"
    completion_price_unit: _Price = "0"
    completion_price: _Price = "0"
    total_price: _Price = "0"
    currency: str = "USD"
    latency: float | None = None

    @property
    def has_price(self) -> bool:
        return "total_price" in self.model_fields_set


class ScriptedTurn(ScriptModel):
    thought: Words = ""
    text: Annotated[str | tuple[str, ...], one_sentence("should be a text, with quotes, or a list of texts")] = ""
    tool_calls: tuple[ScriptedCall, ...] = ()
    chunk_size: PositiveInt = 12
    delay: Annotated[float, Field(ge=0, le=3_600, allow_inf_nan=False)] = 0.0
    """Seconds to wait before each chunk."""
    finish_reason: str | None = None
    usage: ScriptedUsage | None = ScriptedUsage()
    error: ScriptedError | None = None
    api_fails: Fault | None = None
    """A failure of Dify's API during the answer; see `devhost.protocol.failures`."""
    when: Words | None = None
    """The turn is used only if the last message of the prompt contains this text."""
    when_system: Words | None = None
    """The turn is used only if the system message contains this text, such as a sentence of the instruction."""
    when_result: Words | None = None
    """The turn is used only if a tool result since the model's last answer contains this text."""
    when_asked: Words | None = None
    """The turn is used only if a user message of the prompt contains this text."""


def _flat(turns: object) -> object:
    """Flattens nested lists of turns, which YAML aliases create."""
    if not isinstance(turns, list | tuple):
        return turns
    joined: list[object] = []
    for turn in turns:
        flat = _flat(turn)
        if isinstance(flat, list):
            joined += flat
        else:
            joined += [flat]
    return joined


type Turns = Annotated[tuple[ScriptedTurn, ...], BeforeValidator(_flat)]
type SomeTurns = Annotated[tuple[ScriptedTurn, ...], Field(min_length=1), BeforeValidator(_flat)]


# The `recorded` section of a script: the tools as the strategy received them, and their recorded answers.


def beside_the_script(path: Path, validated: ValidationInfo) -> Path:
    """Resolves a path against the script's folder, which is the context of the validation."""
    return (validated.context or Path()) / path


def _sent(path: Path, validated: ValidationInfo) -> Path:
    """Checks that a file whose content leaves this machine is within reach of the script's folder.

    A path that a program gives, without a folder as context, is not checked.
    """
    if validated.context is None:
        return path
    try:
        return within_reach(path, validated.context)
    except ParameterError as error:
        raise PydanticCustomError("out_of_reach", "{sentence}", {"sentence": str(error)}) from error


def _there(path: Path) -> Path:
    if not path.is_file():
        raise PydanticCustomError("no_file", "there is no file {path}", {"path": str(path)})
    return path


def _named(entity: dict[str, Any]) -> dict[str, Any]:
    match entity.get("identity"):
        case {"name": str(), "provider": str()}:
            return entity
        case _:
            raise PydanticCustomError("no_identity", "needs an identity with a name and a provider")


type BesideTheScript = Annotated[Path, AfterValidator(beside_the_script)]
type SentFile = Annotated[BesideTheScript, AfterValidator(_sent)]
"""A file that is sent to a model; the path is relative to the script's folder."""
type _Object = Annotated[dict[str, Any], BeforeValidator(json_value)]


class RecordedPart(ScriptModel):
    """One message of a tool's answer, in one of four forms."""

    text: Words | None = None
    json_: Annotated[dict[str, Any] | list[Any] | None, BeforeValidator(json_value)] = Field(None, alias="json")
    file: Annotated[SentFile, AfterValidator(_there)] | None = None
    """A file that the tool created; the path is relative to the script's folder."""
    meta: _Object = Field(default_factory=dict)
    """The tool's metadata for a file, such as `mime_type` and `filename`."""
    message: _Object | None = None
    """A complete message, for any type that has no field here."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        given = [form for form in (self.text, self.json_, self.file, self.message) if form is not None]
        if len(given) != 1:
            raise PydanticCustomError("form", "needs one of text, json, file, message")
        return self

    @field_validator("message")
    @classmethod
    def _fetches_nothing(cls, message: dict[str, Any] | None, validated: ValidationInfo) -> dict[str, Any] | None:
        """Refuses an image message unless fetching is allowed, because the node downloads the image, as Dify does."""
        if message is not None and message.get("type") == "image" and validated.context is not None and not may_fetch():
            address = (message.get("message") or {}).get("text")
            sentence = f"an image message makes devhost fetch {address!r}: allow it with --allow-http"
            raise PydanticCustomError("fetches", "{sentence}", {"sentence": sentence})
        return message


class RecordedCall(ScriptModel):
    tool: Words
    provider: Words
    arguments: _Object = Field(default_factory=dict)
    answer: tuple[RecordedPart, ...] = ()
    error: Words | None = None
    """The text of the error that the strategy received after the answer; `None` if the call succeeded."""


class RecordedRequest(ScriptModel):
    tools: tuple[Annotated[_Object, AfterValidator(_named)], ...] = ()
    """The tools as Dify sends them to a strategy. Empty values may be omitted."""
    calls: tuple[RecordedCall, ...] = ()
    """The calls in the order in which they started."""

    @property
    def tool_names(self) -> tuple[tuple[str, str], ...]:
        """Pairs of provider and tool name."""
        identities = [entity["identity"] for entity in self.tools]
        return tuple((str(each["provider"]), str(each["name"])) for each in identities)


class ScriptedModelCard(ScriptModel):
    name: str = "scripted-gpt-5"
    features: tuple[str, ...] = DEFAULT_FEATURES
    context_size: PositiveInt = 400_000
    plugin: BesideTheScript | None = None
    """A model plugin, whose model of this name answers instead of the turns."""


class RunLimits(ScriptModel):
    """Limits that devhost itself sets for a run."""

    price: PositivePrice | None = None
    """The maximum cost of the model calls, in the model's currency. Once it is reached, no further call starts."""


WRITTEN_HERE = "the code that runs it"
"""The place of the answers, in messages about turns without a script file."""


class _Turns(ScriptModel):
    turns: SomeTurns


def read_turns(turns: object) -> tuple[ScriptedTurn, ...]:
    """Parses turns from plain data. Raises `ScriptError` for invalid turns."""
    with worded(ScriptError):
        return _Turns.model_validate({"turns": turns}).turns


def gist(said: str) -> str:
    """Returns the text for a comparison that ignores case, whitespace and final punctuation."""
    return " ".join(said.casefold().split()).rstrip(".?!。？！")

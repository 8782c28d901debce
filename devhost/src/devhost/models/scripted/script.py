"""A script file as pydantic checks it, and what one strategy needs of it."""

import json
from collections.abc import Callable, Sequence
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

from devhost.errors import ParameterError, ScriptError, about
from devhost.limits import PositivePrice
from devhost.models.backend import DEFAULT_FEATURES
from devhost.protocol.failures import Fault
from devhost.reach import may_fetch, within_reach
from devhost.text import json_value, load_yaml, real_path, worded
from devhost.words import misspelt


def one_sentence(sentence: str) -> WrapValidator:
    """One sentence instead of pydantic's error for each branch of the union."""

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
"""YAML reads `no` as false and `1` as a number."""
type Texts = Annotated[tuple[Words, ...], one_sentence("should be a text, or a list of texts"), BeforeValidator(listed)]
type _Price = Annotated[float | str, one_sentence("should be a number, or a text"), AfterValidator(str)]


class Scripted(BaseModel):
    """What a person writes. An unknown key is an error that lists those that exist."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, written: Any) -> Any:  # noqa: ANN401 - of any type
        known = [field.alias or name for name, field in cls.model_fields.items()]
        if unknown := [key for key in written if key not in known] if isinstance(written, dict) else []:
            said = {"unknown": ", ".join(misspelt(key, known) for key in unknown), "known": ", ".join(known)}
            raise PydanticCustomError("unknown_key", "unknown key {unknown}; there are: {known}", said)
        return written


class ScriptedCall(Scripted):
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
    """The fields of LLMUsage; None is estimated."""

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


class Turn(Scripted):
    thought: Words = ""
    text: Annotated[str | tuple[str, ...], one_sentence("should be a text, with quotes, or a list of texts")] = ""
    tool_calls: tuple[ScriptedCall, ...] = ()
    chunk_size: PositiveInt = 12
    delay: Annotated[float, Field(ge=0, le=3_600, allow_inf_nan=False)] = 0.0
    """Seconds."""
    finish_reason: str | None = None
    usage: ScriptedUsage | None = ScriptedUsage()
    error: ScriptedError | None = None
    api_fails: Fault | None = None
    """What Dify's API does in place of answering: see `devhost.protocol.failures`."""
    when: Words | None = None
    """A text that the last message of the prompt contains."""
    when_system: Words | None = None
    """A text that the system message contains, such as a sentence of the instruction."""
    when_result: Words | None = None
    """A text that a tool result since the model's last answer contains."""
    when_asked: Words | None = None
    """A text that a user message of the prompt contains."""


def _flat(turns: object) -> object:
    """The turns of a list in which turns and lists of turns stand: what YAML's aliases insert."""
    if not isinstance(turns, list | tuple):
        return turns
    joined: list[object] = []
    for turn in turns:
        flat = _flat(turn)
        joined += flat if isinstance(flat, list) else [flat]
    return joined


type Turns = Annotated[tuple[Turn, ...], BeforeValidator(_flat)]
type SomeTurns = Annotated[tuple[Turn, ...], Field(min_length=1), BeforeValidator(_flat)]


# The section `recorded` of a script: tools as a strategy saw them, and what they answered.


def beside_the_script(path: Path, validated: ValidationInfo) -> Path:
    """The context of the validation is the script's folder."""
    return (validated.context or Path()) / path


def _sent(path: Path, validated: ValidationInfo) -> Path:
    """A file whose content leaves this machine. What a program gives, without a folder, is its own."""
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


class RecordedPart(Scripted):
    """One message of a tool's answer, in one of four forms."""

    text: Words | None = None
    json_: Annotated[dict[str, Any] | list[Any] | None, BeforeValidator(json_value)] = Field(None, alias="json")
    file: Annotated[SentFile, AfterValidator(_there)] | None = None
    """A file that the tool made; the path is relative to the script's folder."""
    meta: _Object = Field(default_factory=dict)
    """Of a file: what the tool said of it, such as `mime_type` and `filename`."""
    message: _Object | None = None
    """A whole message, for every other type."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        given = [form for form in (self.text, self.json_, self.file, self.message) if form is not None]
        if len(given) != 1:
            raise PydanticCustomError("form", "needs one of text, json, file, message")
        return self

    @field_validator("message")
    @classmethod
    def _fetches_nothing(cls, message: dict[str, Any] | None, validated: ValidationInfo) -> dict[str, Any] | None:
        """The node downloads the picture of an image message, as Dify does."""
        if message is not None and message.get("type") == "image" and validated.context is not None and not may_fetch():
            address = (message.get("message") or {}).get("text")
            sentence = f"an image message makes devhost fetch {address!r}: allow it with --allow-http"
            raise PydanticCustomError("fetches", "{sentence}", {"sentence": sentence})
        return message


class RecordedCall(Scripted):
    tool: Words
    provider: Words
    arguments: _Object = Field(default_factory=dict)
    answer: tuple[RecordedPart, ...] = ()
    error: Words | None = None
    """After the answer: the words of the error, as the strategy read them."""


class Recorded(Scripted):
    tools: tuple[Annotated[_Object, AfterValidator(_named)], ...] = ()
    """Each as Dify sends it to a strategy; what is empty may be left out."""
    calls: tuple[RecordedCall, ...] = ()
    """In the order in which they began."""

    @property
    def tool_names(self) -> tuple[tuple[str, str], ...]:
        """Each with its provider before it."""
        identities = [entity["identity"] for entity in self.tools]
        return tuple((str(each["provider"]), str(each["name"])) for each in identities)


type _Files = tuple[SentFile, ...]
"""Paths, relative to the script's folder."""


class FollowUp(Scripted):
    """What the user says later in the conversation, and how the model answers."""

    query: Words
    approval: Words | None = None
    """The answer to calls that wait, if it is not the query."""
    files: _Files = ()
    """What the user sends with it."""
    turns: SomeTurns


class ScriptedModelCard(Scripted):
    name: str = "scripted-gpt-5"
    features: tuple[str, ...] = DEFAULT_FEATURES
    context_size: PositiveInt = 400_000
    plugin: BesideTheScript | None = None
    """A model plugin, whose model of this name answers in place of the turns."""


class RunLimits(Scripted):
    """Limits of devhost's own on a run."""

    price: PositivePrice | None = None
    """What its model calls may cost, in the currency of the model: once that is reached, no further call begins."""


class Part(Scripted):
    """Turns for some strategies. `model_fields_set` says what the file sets."""

    strategy: Annotated[
        tuple[str, ...], one_sentence("should be a name, or a list of names"), BeforeValidator(listed)
    ] = ()
    """Those whose model calls the turns fit; empty for any."""
    params: _Object = Field(default_factory=dict)
    turns: SomeTurns = ()
    then: tuple[FollowUp, ...] = ()
    """The rest of the conversation, in order."""
    otherwise: Turns | None = None


class ScriptFile(Part):
    extends: str | None = None
    """Another script, seen from this file's folder: what this one does not set is as there."""
    description: str = ""
    query: Words = ""
    files: _Files = ()
    """What the user sends with the query."""
    variables: _Object = Field(default_factory=dict)
    """Of the workflow around the node, by `node.name`: what templates and selectors in `params` refer to."""
    mcp: Texts = ()
    """MCP servers, as `--mcp` takes them."""
    panel: dict[str, dict[str, str]] = Field(default_factory=dict)
    """By tool, the parameters that the node's panel holds; a text may be a template."""
    model: ScriptedModelCard = ScriptedModelCard()
    api_fails: dict[str, Fault] = Field(default_factory=dict)
    """By tool, what Dify's API does each time it is called."""
    recorded: Recorded = Recorded()
    """Tools that answer from a recording."""
    limits: RunLimits = RunLimits()
    expect: _Object | None = None
    """What came of the conversation has to fit it: an `Expected` of `devhost.expected`."""
    variants: tuple[Part, ...] = ()

    @property
    def parts(self) -> tuple[Part, ...]:
        """The later ones go before the earlier ones."""
        return (self, *self.variants)


def checked(data: object, folder: Path | None = None) -> ScriptFile:
    """A script as plain data; `folder` is where its files are, by default the current one."""
    with worded(ScriptError):
        return ScriptFile.model_validate(data, context=folder)


def read_files(file: Path, *, asks: bool) -> tuple[ScriptFile, ...]:
    """The script behind those that it extends, of which each goes before the one in front of it.

    `asks`: whether it needs a question.
    """
    files: dict[Path, ScriptFile] = {}
    following: Path | None = file
    while following is not None:
        read = files[real_path(following)] = _read_file(following)
        following = None if read.extends is None else following.parent / read.extends
        if following is not None and real_path(following) in files:
            raise ScriptError(f"{file}: extends: {following} leads back to itself")
    every = tuple(reversed(files.values()))
    if asks and not any("query" in each.model_fields_set for each in every):
        raise ScriptError(f"{file}: query: Field required")
    if not any(part.turns or each.model.plugin for each in every for part in each.parts):
        raise ScriptError(f"{file}: turns: Field required")
    return every


def _read_file(file: Path) -> ScriptFile:
    try:
        return checked(load_yaml(file), file.parent)
    except ScriptError as error:
        raise ScriptError(f"{file}: {error}") from error


def read_turns(turns: object) -> tuple[Turn, ...]:
    """Turns given as plain data."""
    return checked({"turns": turns}).turns


# A script for one strategy: what is asked, with which parameters, and how the scripted model answers, turn by turn.

WRITTEN_HERE = "the code that runs it"
"""The place of turns without a script file."""
SHARED = ScriptFile.model_fields.keys() - Part.model_fields.keys() - {"extends", "variables", "variants"}
"""What holds for every strategy."""


class Script(ScriptFile):
    """A file behind those that it extends, with the turns for one strategy, or with none: then `fits` is False."""

    place: str
    """The file for people, below the current folder if it can be."""
    first_strategy: str | None = None
    """The strategy that is run if none is named."""
    written_for: tuple[str, ...] = ()
    """All strategies that there are turns for; empty for any."""

    @classmethod
    def read(cls, file: Path, strategy: str | None = None, *, asks: bool = True) -> Self:
        """The script for a strategy, by default for the first one that the file names. `asks`: it needs a question."""
        with about("script"):
            files = read_files(file, asks=asks)
        return cls.model_construct(**chosen(files, strategy), place=_place(file))

    @classmethod
    def of(cls, data: object, strategy: str | None = None, folder: Path | None = None) -> Self:
        """From plain data in the form of a script file; `folder` is where its files are, by default the current one."""
        return cls.model_construct(**chosen([checked(data, folder)], strategy), place=WRITTEN_HERE)

    @property
    def fits(self) -> bool:
        return bool(self.turns)

    @property
    def questions(self) -> tuple[str, ...]:
        """What the scripted model has answers for."""
        return tuple(dict.fromkeys((self.query, *(each.query for each in self.then))))

    def turns_for(self, query: str, asked: int = 0) -> tuple[Turn, ...] | None:
        """The turns for what the script's user says, or those for anything else; None if there are none for it.

        `asked`: how often the conversation had this question before, because the user may say yes twice.
        """
        said = [(self.query, self.turns), *((each.query, each.turns) for each in self.then)]
        written = [turns for asked_for, turns in said if gist(asked_for) == gist(query)]
        if written:
            return written[min(asked, len(written) - 1)]
        return self.otherwise

    def knows(self, query: str) -> bool:
        return gist(query) in map(gist, self.questions)

    def begins_with(self, query: str) -> bool:
        """Whether the query is the script's own question."""
        return gist(query) == gist(self.query)


def chosen(files: Sequence[ScriptFile], strategy: str | None) -> dict[str, Any]:
    """The fields of a Script, by default for the first strategy. What stands later goes before what stands earlier."""
    first = next((file.strategy[0] for file in reversed(files) if file.strategy), None)
    given: dict[str, Any] = {"params": {}, "variables": {}, "turns": ()}
    for file in files:
        given |= _given(file, SHARED)
        given["variables"] |= file.variables
        given["params"] |= file.params
        for part in file.parts:
            if not part.strategy or (strategy or first) in part.strategy:
                given["params"] |= part.params
                # With turns of its own, a part has a conversation of its own: what follows in another is not inherited.
                given |= {**({"then": ()} if part.turns else {}), **_given(part, {"turns", "then", "otherwise"})}
    return {**given, "first_strategy": first, "written_for": _written_for(files)}


def _given(part: Part, names: set[str]) -> dict[str, Any]:
    """Those of its fields that the file sets."""
    return {name: getattr(part, name) for name in part.model_fields_set & names}


def _written_for(files: Sequence[ScriptFile]) -> tuple[str, ...]:
    parts = [part for file in reversed(files) for part in file.parts if part.turns]
    if any(not part.strategy for part in parts):
        return ()
    return tuple(dict.fromkeys(name for part in parts for name in part.strategy))


def gist(said: str) -> str:
    """People type a question without its capitals and its last full stop."""
    return " ".join(said.casefold().split()).rstrip(".?!。？！")


def _place(file: Path) -> str:
    whole = real_path(file)
    here = Path.cwd()
    return str(whole.relative_to(here) if whole.is_relative_to(here) else file)

"""The expectations of a case as pydantic checks them. In: plain data. Out: a frozen `Expected`."""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, NonNegativeFloat, model_validator
from pydantic_core import PydanticCustomError

from devhost.models.scripted.turn import SomeTurns, Words, one_sentence
from devhost.text.json_schema import validator_of
from devhost.text.json_value import json_value


class Checked(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise PydanticCustomError("pattern", "not a regular expression: {error}", {"error": str(error)}) from error
    return text


def _schema(schema: dict[str, Any]) -> dict[str, Any]:
    try:
        validator_of(schema)
    except ValueError as error:
        raise PydanticCustomError("json_schema", "not a JSON Schema: {error}", {"error": str(error)}) from error
    return schema


def _listed(value: object) -> object:
    return [value] if isinstance(value, str | dict) else value


def _bounds(value: object) -> object:
    """A number alone is the upper bound."""
    return {"at_most": value} if isinstance(value, int | float) and not isinstance(value, bool) else value


def _named(value: object) -> object:
    """`search` and `{search: {language: ja}}`."""
    match value:
        case str():
            return {"name": value}
        case dict() if len(value) == 1 and isinstance(next(iter(value.values())), dict):
            ((name, arguments),) = value.items()
            return {"name": name, "arguments": arguments}
        case _:
            raise PydanticCustomError("call", "should be a tool's name, or {NAME: {ARGUMENT: VALUE}}")


type Texts = Annotated[
    tuple[Words, ...], one_sentence("should be a text, or a list of texts"), BeforeValidator(_listed)
]
type _Schema = Annotated[dict[str, Any], AfterValidator(_schema), BeforeValidator(json_value)]


class ExpectedCall(Checked):
    name: str
    arguments: Annotated[dict[str, Any], BeforeValidator(json_value)] = Field(default_factory=dict)
    """Those that matter, with their values; the tool may have been given others too."""

    def __str__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"{self.name}({given})" if given else self.name


type _Calls = Annotated[tuple[Annotated[ExpectedCall, BeforeValidator(_named)], ...], BeforeValidator(_listed)]


class TextExpected(Checked):
    contains: Texts = ()
    lacks: Texts = ()
    matches: Annotated[tuple[Annotated[str, AfterValidator(_pattern)], ...], BeforeValidator(_listed)] = ()
    """Regular expressions of Python, searched anywhere; `^` and `$` match at each line."""
    equals: Words | None = None
    json_schema: _Schema | None = None
    """The answer is JSON that fits."""


class CallsExpected(Checked):
    exactly: _Calls | None = None
    """These and no others, in this order."""
    in_order: _Calls = ()
    """These in this order; others may stand between them."""
    at_least: _Calls = ()
    never: _Calls = ()

    @property
    def every(self) -> tuple[ExpectedCall, ...]:
        return (*(self.exactly or ()), *self.in_order, *self.at_least, *self.never)


class SourcesExpected(Checked):
    cited: Texts = ()
    """Each is part of the title or the document of a source that the answer cites."""
    at_least: Annotated[int, Field(ge=0)] | None = None
    at_most: Annotated[int, Field(ge=0)] | None = None


class Bounds(Checked):
    at_least: NonNegativeFloat | None = None
    at_most: NonNegativeFloat | None = None

    @model_validator(mode="after")
    def _in_order(self) -> "Bounds":
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise PydanticCustomError("bounds", "at_least is above at_most")
        return self


type _Bounds = Annotated[Bounds, BeforeValidator(_bounds)]


class JudgeExpected(Checked):
    rubric: Annotated[str, Field(min_length=1)]
    """What a good answer is, for the model that judges."""
    turns: SomeTurns | None = None
    """What a scripted judge says; `when` is searched in the question and answer that it reads."""


class Expected(Checked):
    text: TextExpected | None = None
    calls: CallsExpected | None = None
    stop_reason: Texts = ()
    """Any of these."""
    sources: SourcesExpected | None = None
    rounds: _Bounds | None = None
    tokens: _Bounds | None = None
    seconds: _Bounds | None = None
    judge: JudgeExpected | None = None

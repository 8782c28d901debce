"""The section `recorded` of a script: tools as a strategy saw them, and what they answered.

In: plain data. Out: a checked, frozen `Recorded`; `devhost.tools.recorded` answers calls from it.
"""

from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError

from devhost.models.scripted.turn import Scripted, Words
from devhost.text.json_value import json_value


def beside_the_script(path: Path, validated: ValidationInfo) -> Path:
    """The context of the validation is the script's folder."""
    return (validated.context or Path()) / path


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
type _Object = Annotated[dict[str, Any], BeforeValidator(json_value)]
FORMS = ("text", "json", "file", "message")


class RecordedPart(Scripted):
    """One message of a tool's answer, in one of four forms."""

    text: Words | None = None
    json_: Annotated[dict[str, Any] | list[Any] | None, BeforeValidator(json_value)] = Field(None, alias="json")
    file: Annotated[BesideTheScript, AfterValidator(_there)] | None = None
    """A file that the tool made; the path is relative to the script's folder."""
    meta: _Object = Field(default_factory=dict)
    """Of a file: what the tool said of it, such as `mime_type` and `filename`."""
    message: _Object | None = None
    """A whole message, for every other type."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        given = [form for form in (self.text, self.json_, self.file, self.message) if form is not None]
        if len(given) != 1:
            raise PydanticCustomError("form", "needs one of {forms}", {"forms": ", ".join(FORMS)})
        return self


class RecordedCall(Scripted):
    tool: Words
    provider: Words
    arguments: _Object = Field(default_factory=dict)
    answer: tuple[RecordedPart, ...] = ()
    error: Words | None = None
    """After the answer: the words of the error, as the strategy read them."""


class Recorded(Scripted):
    tools: tuple[Annotated[_Object, AfterValidator(_named)], ...] = ()
    """Each as Dify sends it to a strategy."""
    calls: tuple[RecordedCall, ...] = ()
    """In the order in which they began."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the tools."""
        return tuple(str(entity["identity"]["name"]) for entity in self.tools)

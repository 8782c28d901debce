"""Rules for fields of several declarations when a plugin registers, and the error for a field that breaks one."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictStr, ValidationError
from pydantic_core import PydanticCustomError

from devhost.errors import RegistrationError
from devhost.protocol.wire import JsonObject
from devhost.text.yaml_file import describe

TAGS = {
    *("search", "image", "videos", "weather", "finance", "design", "travel", "social", "news", "medical"),
    *("productivity", "education", "business", "entertainment", "utilities", "agent", "rag", "other", "trigger"),
}


def _known_tag(tag: str) -> str:
    if tag not in TAGS:
        context = {"tag": repr(tag), "known": ", ".join(sorted(TAGS))}
        raise PydanticCustomError("tag", "{tag} is none of {known}", context)
    return tag


type Text = Annotated[StrictStr, Field(min_length=1, max_length=1023)]
type ShortText = Annotated[StrictStr, Field(max_length=1023)]
type Tag = Annotated[StrictStr, AfterValidator(_known_tag)]
type Path = Annotated[StrictStr, Field(min_length=1, max_length=128)]


class Checked(BaseModel):
    """Unknown keys are ignored: Go has no field for them."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class I18n(Checked):
    en_US: Text  # noqa: N815 - the key in the YAML
    ja_JP: ShortText = ""  # noqa: N815
    zh_Hans: ShortText = ""  # noqa: N815
    pt_BR: ShortText = ""  # noqa: N815


def check(kind: type[Checked], value: JsonObject, where: str) -> None:
    try:
        kind.model_validate(value)
    except ValidationError as error:
        raise RegistrationError(f"{where}: {describe(error)}") from error

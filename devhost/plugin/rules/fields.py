"""Rules for fields of several declarations when a plugin registers, and the error for a field that breaks one."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, get_args, get_origin

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictStr, ValidationError
from pydantic_core import PydanticCustomError
from rapidfuzz.fuzz import ratio
from rapidfuzz.process import extractOne

from devhost.errors import RegistrationError
from devhost.protocol.golang.values import kind_of
from devhost.protocol.wire import JsonObject
from devhost.text.yaml_file import describe

_UNION = frozenset({"str", "bool", "int", "float"})
LANGUAGES = ("en_US", "ja_JP", "zh_Hans", "pt_BR")
"""Of a text; the daemon drops every other."""
ALIKE = 81
"""Percent: `defualt` is `default`, and `in` is not `min`."""
LOST = frozenset({"unknown_key", "unknown_language", "llm_description", "input_schema"})
"""What Dify takes and does not use."""
NOT_THE_DAEMONS = LOST | {"pep440", "uuid", "default_fits", "node_outputs", "feature", "selector"}
"""Rules of Dify's API or the SDK: the daemon registers a plugin that breaks them."""
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
    """The fields are those of the daemon's struct and of the SDK's model; both ignore every other key."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class I18n(Checked):
    en_US: Text  # noqa: N815 - the key in the YAML
    ja_JP: ShortText = ""  # noqa: N815
    zh_Hans: ShortText = ""  # noqa: N815
    pt_BR: ShortText = ""  # noqa: N815


@dataclass(frozen=True)
class Fault:
    """A field that breaks a rule."""

    path: tuple[str | int, ...]
    rule: str
    """Pydantic's name for it, or one of this package's own."""
    sentence: str
    value: object

    @property
    def kind(self) -> str:
        """JSON's name for what stands there."""
        return kind_of(self.value) if isinstance(self.value, str | bool | int | float | dict | list) else "null"


def faults(kind: type[Checked], value: JsonObject) -> list[Fault]:
    """Each field once, although a field of several types breaks the rules of each; unknown keys last."""
    found: dict[tuple[str | int, ...], Fault] = {}
    try:
        kind.model_validate(value)
    except ValidationError as error:
        for each in error.errors():
            path, rule = _without_types(each["loc"]), each["type"]
            if path[-1:] == ("default",) and rule != "default_fits":
                rule = "basic"
            is_number = rule == "string_type" and isinstance(each["input"], int | float)
            sentence = f"{each['msg']}: write it in quotes" if is_number else each["msg"]
            found.setdefault(path, Fault(path, rule, sentence, each.get("input")))
    return [
        *found.values(),
        *(fault for path, struct, each in _structs(kind, value) for fault in _lost(struct, each, path)),
    ]


def _lost(kind: type[Checked], value: JsonObject, path: tuple[str | int, ...]) -> Iterator[Fault]:
    """Keys that neither the daemon's struct nor the SDK's model has: their values are lost without a word."""
    for key in value:
        if key in kind.model_fields:
            continue
        if kind is I18n:
            yield Fault((*path, key), "unknown_language", f"Dify drops it; it has {', '.join(LANGUAGES)}", value[key])
            continue
        free = [known for known in kind.model_fields if known not in value]
        begun = [known for known in free if len(key) > len("key") and known.startswith(key)]
        near = begun or extractOne(key, free, scorer=ratio, score_cutoff=ALIKE, processor=str.lower)
        meant = f"it has {near[0]!r}" if near else "its value is lost"
        yield Fault((*path, key), "unknown_key", f"Dify has no such key; {meant}", value[key])


def _structs(
    annotation: object, value: object, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], type[Checked], JsonObject]]:
    """The value, where the annotation is a struct, and all structs within."""
    inner = get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Checked):
        if isinstance(value, dict):
            yield path, annotation, value
            for key, field in annotation.model_fields.items():
                yield from _structs(field.annotation, value.get(key), (*path, key))
    elif isinstance(value, dict) and get_origin(annotation) is dict:
        for key, each in value.items():
            yield from _structs(inner[1], each, (*path, key))
    elif isinstance(value, list) and get_origin(annotation) in {list, tuple}:
        for number, each in enumerate(value):
            yield from _structs(inner[0], each, (*path, number))
    else:
        for each in inner:
            yield from _structs(each, value, path)


def _without_types(path: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Pydantic names the types of a union behind the field."""
    return path[:-1] if path[-1:] and path[-1] in _UNION else path


def check(kind: type[Checked], value: JsonObject, where: str) -> None:
    try:
        kind.model_validate(value)
    except ValidationError as error:
        if all(each["type"] in NOT_THE_DAEMONS for each in error.errors()):
            return
        raise RegistrationError(f"{where}: {describe(error)}") from error

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
MISSPELT = "misspelt"
ALIKE = 80
"""Percent: `defualt` is `default`, and `max` is not `min`."""
NOT_THE_DAEMONS = frozenset({MISSPELT, "pep440", "uuid", "default_fits", "node_schema", "feature", "selector"})
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
    """Unknown keys are ignored: Go has no field for them."""

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
    """Each field once, although a field of several types breaks the rules of each; misspelt keys last."""
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
    return [*found.values(), *_misspelt(kind, value, ())]


def _misspelt(kind: type[Checked], value: object, path: tuple[str | int, ...]) -> Iterator[Fault]:
    """Keys that no struct has, and that are close to one of this struct: their values are lost without a word."""
    match value:
        case list():
            for number, each in enumerate(value):
                yield from _misspelt(kind, each, (*path, number))
        case dict():
            known = [key for key in kind.model_fields if key not in value]
            for key in value.keys() - kind.model_fields.keys():
                if near := extractOne(key, known, scorer=ratio, score_cutoff=ALIKE):
                    sentence = f"Dify has no such key; it has {near[0]!r}"
                    yield Fault((*path, key), MISSPELT, sentence, value[key])
            for key, field in kind.model_fields.items():
                for inner in _structs(field.annotation):
                    yield from _misspelt(inner, value.get(key), (*path, key))


def _structs(annotation: object) -> Iterator[type[Checked]]:
    """The structs in an annotation such as `tuple[_Parameter, ...]`; values of a mapping have keys of their own."""
    if isinstance(annotation, type) and issubclass(annotation, Checked):
        yield annotation
    elif get_origin(annotation) is not dict:
        for each in get_args(annotation):
            yield from _structs(each)


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

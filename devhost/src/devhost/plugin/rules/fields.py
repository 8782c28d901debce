"""Rules for fields that several declarations share, and the daemon's words for a fault."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticCustomError
from rapidfuzz.fuzz import ratio
from rapidfuzz.process import extractOne

from devhost.errors import RegistrationError
from devhost.golang import kind_of
from devhost.protocol.wire import JsonObject
from devhost.text import describe

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


# A fault in a declaration as the daemon words it.
#
# Worded after the daemon's source: refusals of declarations were not recorded.

MANIFEST = "PluginDeclaration.PluginDeclarationWithoutAdvancedFields"
TOOL_PROVIDER = "ToolProviderDeclaration"
STRATEGY_PROVIDER = "AgentStrategyProviderDeclaration"
_NAMES: Mapping[str, str] = {
    "en_US": "EnUS",
    "ja_JP": "JaJp",
    "zh_Hans": "ZhHans",
    "pt_BR": "PtBr",
    "llm": "LLM",
    "llm_description": "LLMDescription",
    "url": "URL",
    "credentials_for_provider": "CredentialsSchema",
}
_GO_TYPES: Mapping[str, str] = {
    "string_type": "string",
    "bool_type": "bool",
    "int_type": "int",
    "int_from_float": "int",
    "float_type": "float64",
    "dict_type": "map[string]interface {}",
    "list_type": "[]",
    "tuple_type": "[]",
    "model_type": "struct",
}
_NUMBERS: Mapping[str, str] = {"min": "float64", "max": "float64", "memory": "int64", "size": "int64"}
_ENUMS: Mapping[tuple[str, str], str] = {
    (MANIFEST, "type"): "eq",
    (MANIFEST, "arch"): "is_available_arch",
    (MANIFEST, "language"): "is_available_language",
    (TOOL_PROVIDER, "type"): "tool_parameter_type",
    (TOOL_PROVIDER, "form"): "tool_parameter_form",
    (STRATEGY_PROVIDER, "type"): "agent_strategy_parameter_type",
}
_TAGS: Mapping[str, str] = {
    "missing": "required",
    "string_too_short": "required",
    "too_short": "required",
    "greater_than": "required",
    "greater_than_equal": "min",
    "less_than_equal": "max",
    "tag": "plugin_tag",
    "scope": "is_scope",
    "basic": "is_basic_type",
}
_SHORT = frozenset({"scope", "features"})
"""Fields whose length has the tag `max`, as all of the manifest have; the others have `lt`."""


def in_the_daemons_words(struct: str, fault: Fault) -> str:
    """Empty for a fault that the daemon does not see."""
    if fault.rule in NOT_THE_DAEMONS:
        return ""
    key = _last_key(fault)
    if fault.rule in _GO_TYPES:
        keys = ".".join(part for part in fault.path if isinstance(part, str))
        wanted = _NUMBERS.get(key, _GO_TYPES[fault.rule])
        owner = struct.partition(".")[0]
        return f"json: cannot unmarshal {fault.kind} into Go struct field {owner}.{keys} of type {wanted}"
    if fault.rule == "rfc3339":
        text = fault.value
        return f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse "{text}" as "2006"'
    where = f"{struct}{_go_path(fault.path)}"
    return f"Key: '{where}' Error:Field validation for '{_go_name(key)}' failed on the '{_tag(struct, fault, key)}' tag"


def _last_key(fault: Fault) -> str:
    return next((part for part in reversed(fault.path) if isinstance(part, str)), "")


def _tag(struct: str, fault: Fault, key: str) -> str:
    match fault.rule:
        case "string_too_long":
            return "max" if struct == MANIFEST or key in _SHORT else "lt"
        case "string_pattern_mismatch":
            if struct == MANIFEST:
                return "max"
            return (
                "tool_identity_name" if len(fault.path) > len(("identity", "name")) else "tool_provider_identity_name"
            )
        case "literal_error":
            if "credentials_for_provider" in fault.path:
                return "credential_type"
            if "auto_generate" in fault.path:
                return "parameter_auto_generate_type"
            return _ENUMS.get((struct, key), key)
        case other:
            return _TAGS.get(other, other)


def _go_path(path: tuple[str | int, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{_go_name(part)}" for part in path)


def _go_name(key: str) -> str:
    return _NAMES.get(key) or "".join(part[:1].upper() + part[1:] for part in key.split("_"))


# Parameters, options and sources, which strategies and tools share, and what a default has to fit.

type Basic = StrictStr | StrictBool | StrictInt | StrictFloat
SCOPES = {
    "app-selector": {"all", "chat", "workflow", "completion"},
    "model-selector": {
        *("llm", "text-embedding", "rerank", "tts", "speech2text"),
        *("moderation", "vision", "document", "tool-call"),
    },
    "any": {
        *("string", "number", "object"),
        *("array[number]", "array[string]", "array[object]", "array[file]"),
    },
}


class Option(Checked):
    value: Text
    label: I18n
    icon: StrictStr = ""
    show_on: Any = None


class _AutoGenerate(Checked):
    type: Literal["prompt_instruction"]


class _Template(Checked):
    enabled: StrictBool = False


class Parameter(Checked):
    """What a parameter has in both; `type` is defined by each."""

    name: Text
    label: I18n
    type: str
    auto_generate: _AutoGenerate | None = None
    template: _Template | None = None
    scope: Annotated[StrictStr, Field(max_length=1024)] | None = None
    required: StrictBool = False
    min: StrictInt | StrictFloat | None = None
    max: StrictInt | StrictFloat | None = None
    precision: StrictInt | None = None
    options: tuple[Option, ...] = ()

    @field_validator("scope")
    @classmethod
    def _fits_type(cls, scope: str | None, checked: ValidationInfo) -> str | None:
        """The daemon is content with one part that it knows."""
        kind = checked.data.get("type")
        if not scope or kind is None:
            return scope
        if kind not in SCOPES:
            raise PydanticCustomError("scope", "a parameter of type {kind} has no scope", {"kind": kind})
        if not SCOPES[kind].intersection(part.strip() for part in scope.split("&")):
            context = {"scope": repr(scope), "known": ", ".join(sorted(SCOPES[kind]))}
            raise PydanticCustomError("scope", "{scope} has none of {known} (joined by &)", context)
        return scope


def fitting[T](default: T, checked: ValidationInfo) -> T:
    """One with which Dify builds the parameter; type and options of the parameter are checked before."""
    kind, options = checked.data.get("type"), checked.data.get("options")
    if default is None or default == "" or checked.data.get("multiple"):
        return default
    if kind == "select" and options is not None:
        values = [option.value for option in options]
        if default not in values:
            quoted = ": write it in quotes" if str(default) in values else ""
            context = {"default": repr(default), "values": ", ".join(values) or "none", "quoted": quoted}
            raise PydanticCustomError("default_fits", "{default} is not among the options: {values}{quoted}", context)
    if kind == "number" and isinstance(default, str) and not _reads_as_number(default):
        raise PydanticCustomError("default_fits", "{default} is not a number", {"default": repr(default)})
    return default


def _reads_as_number(text: str) -> bool:
    """As in Dify's cast: 1e3 without a dot is not one."""
    try:
        float(text) if "." in text else int(text)
    except ValueError:
        return False
    return True

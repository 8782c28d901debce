"""The rules of the daemon and the marketplace for the fields of manifests, strategies and tools.

The daemon applies all of its rules only when a plugin registers for remote debugging. A package that breaks a rule is
installed and fails later, in use.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from devhost.plugin import declaration
from devhost.plugin.declaration import DeclarationModel, I18n, as_sent
from devhost.plugin.problems import LANGUAGES, Level, Problem
from devhost.protocol.wire import JsonObject
from devhost.text import place_of, properties_of
from devhost.words import misspelt

type Way = tuple[str | int, ...]
LOST = "lost"
"""The error type of a value that Dify accepts but does not use."""
TAGS = "search|image|videos|weather|finance|design|travel|social|news|medical|productivity|education|business"
TAGS += "|entertainment|utilities|agent|rag|other|trigger"
NOT_OF_TOOLS = frozenset({"agent", "trigger"})
SCOPES = {
    "app-selector": ["all", "chat", "workflow", "completion"],
    "model-selector": [
        *("llm", "text-embedding", "rerank", "tts", "speech2text", "moderation"),
        *("vision", "document", "tool-call"),
    ],
    "any": ["string", "number", "object", "array[number]", "array[string]", "array[object]", "array[file]"],
}
RESERVED = frozenset({"text", "files", "json"})
"""The names of outputs that every node has. Dify fails a node whose plugin sends a variable with such a name."""


def _wrong(sentence: str, how: str = "wrong") -> PydanticCustomError:
    return PydanticCustomError(how, "{sentence}", {"sentence": sentence})


type Text = Annotated[str, Field(min_length=1, max_length=1023)]
type Name = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]+$")]
type Path = Annotated[str, Field(min_length=1, max_length=128)]
type Tag = Annotated[str, Field(pattern=f"^({TAGS})$")]
type Version = Annotated[str, Field(pattern=r"^\d{1,4}(\.\d{1,4}){2}(-\w{1,16})?$")]
"""A version such as 0.2.0 or 0.2.0-beta1."""
type Time = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$")]
"""A time in the format of RFC 3339."""


class _Resource(DeclarationModel):
    permission: declaration.Permission = declaration.Permission()
    memory: Annotated[int, Field(gt=0)]


class _Plugins(declaration.Plugins):
    endpoints: tuple[Path, ...] = ()
    datasources: tuple[Path, ...] = ()
    triggers: tuple[Path, ...] = ()


class _Runner(DeclarationModel):
    entrypoint: str
    language: Literal["python"]
    version: Path


class _Meta(DeclarationModel):
    version: Version
    arch: Annotated[list[Literal["amd64", "arm64"]], Field(min_length=1)]
    runner: _Runner
    minimum_dify_version: str | None = None


class ManifestRules(DeclarationModel):
    version: Version
    type: Literal["plugin"]
    author: Annotated[str, Field(pattern=r"^[a-z0-9_-]{1,64}$")]
    name: Annotated[str, Field(pattern=r"^[a-z0-9_-]{1,128}$")]
    label: I18n
    description: I18n
    icon: Path
    icon_dark: str = ""
    created_at: Time
    resource: _Resource
    plugins: _Plugins
    meta: _Meta
    tags: tuple[Tag, ...] = ()
    verified: Any = None
    privacy: Any = None
    repo: Any = None
    contact: Any = None
    """The contact, which only the marketplace reads."""


def marketplace_problems(manifest: JsonObject) -> Iterator[Problem]:
    """Yields violations of the marketplace's additional rules for a manifest."""
    wanted = {
        "repo": (r"https://\S+", "give the address of the source code"),
        "contact": (r"[^@\s]+@[^@\s]+", "give an e-mail address"),
        "privacy": (r".+", "name the privacy policy, such as PRIVACY.md"),
    }
    for key, (pattern, sentence) in wanted.items():
        if not re.fullmatch(pattern, str(manifest.get(key) or "")):
            yield Problem("marketplace", "manifest.yaml", key, sentence, level="marketplace")
    if taken := re.search("langgenius|dify", str(manifest.get("author"))):
        sentence = f"it contains {taken[0]!r}, which stands for Dify's own plugins"
        yield Problem("marketplace", "manifest.yaml", "author", sentence, level="marketplace")


class _Option(declaration.Option):
    value: Text
    icon: str = ""
    show_on: Any = None


def _scope(scope: str | None, checked: ValidationInfo) -> str | None:
    """Checks a scope as the daemon does: at least one of its parts must be known."""
    kind = checked.data.get("type")
    if not scope or kind is None:
        return scope
    if kind not in SCOPES:
        raise _wrong(f"a parameter of type {kind} has no scope")
    if not set(SCOPES[kind]) & {part.strip() for part in scope.split("&")}:
        raise _wrong(f"{scope!r} has none of {', '.join(SCOPES[kind])} (joined by &)")
    return scope


type Scope = Annotated[str | None, AfterValidator(_scope)]


def _fitting[T](default: T, checked: ValidationInfo) -> T:
    """Checks that Dify accepts the default. The parameter's type and options are already validated."""
    kind = checked.data.get("type")
    options = checked.data.get("options")
    if default is None or default == "" or checked.data.get("multiple"):
        return default
    if kind == "select" and options is not None:
        values = [option.value for option in options]
        if default not in values:
            quoted = ""
            if str(default) in values:
                quoted = ": write it in quotes"
            there_are = ", ".join(values) or "none"
            raise _wrong(f"{default!r} is not among the options: {there_are}{quoted}")
    if kind == "number" and isinstance(default, str):
        try:
            float(default) if "." in default else int(default)  # as in Dify's cast, 1e3 without a dot is not a number
        except ValueError:
            raise _wrong(f"{default!r} is not a number") from None
    return default


class _Identity(declaration.Identity):
    author: Text
    name: Name


class _ProviderIdentity(_Identity):
    description: I18n
    icon: Text
    icon_dark: str = ""
    tags: tuple[Tag, ...] = ()


type _Typed = Literal["string", "number", "boolean", "select", "secret-input", "file", "files"]
type _StrategyParameterType = Literal[_Typed, "app-selector", "model-selector", "array[tools]", "any"]


class _StrategyParameter(declaration.Parameter):
    name: Text
    type: _StrategyParameterType
    options: tuple[_Option, ...] = ()
    default: Annotated[str | bool | int | float | None, AfterValidator(_fitting)] = None
    scope: Scope = None

    @model_validator(mode="after")
    def _is_chosen(self) -> Self:
        """Refuses an optional selector: a node without a choice fails ("The selector must be a dictionary.")."""
        if self.type in {"model-selector", "app-selector"} and not self.required:
            raise _wrong(f"a {self.type} that is not required fails the node without a choice")
        return self


def _node_outputs(schema: dict[str, Any]) -> dict[str, Any]:
    """Refuses reserved names of outputs.

    The daemon accepts any object as the schema, and Dify lists its properties as the node's variables.
    """
    if taken := sorted(RESERVED & set(properties_of(schema))):
        raise _wrong(f"Dify uses these names itself, and fails the node: {', '.join(taken)}")
    return schema


class _Strategy(declaration.Strategy):
    identity: _Identity
    parameters: tuple[_StrategyParameter, ...] = ()
    output_schema: Annotated[dict[str, Any], AfterValidator(_node_outputs)] = Field(default_factory=dict)
    features: tuple[Literal["history-messages"], ...] = ()
    """The features of the strategy. Any other value prevents the plugin's start and breaks Dify's list of providers."""
    has_runtime_parameters: bool = False


class _StrategyProvider(DeclarationModel):
    identity: _ProviderIdentity
    strategies: Annotated[list[str], Field(min_length=1)]
    extra: Any = None


class _AutoGenerate(DeclarationModel):
    type: Literal["prompt_instruction"]


class _Template(DeclarationModel):
    enabled: bool = False


BREAKS_THE_LIST = "the workspace's whole list of tools fails for it, also those of other plugins"
"""The effect of Dify's own validation of tools on a declaration that the daemon accepted."""
OF_SEVERAL = frozenset({"select", "dynamic-select"})
"""The types of parameters that may have several values."""
NEWER_TYPES = frozenset({"date", "date-range"})
"""Types that the daemon and the SDK know but Dify 1.14.2 does not."""


class _ToolParameter(declaration.ToolParameter):
    name: Text
    multiple: bool = False
    options: tuple[_Option, ...] = ()
    auto_generate: _AutoGenerate | None = None  # type: ignore[assignment] # the base class accepts any object
    template: _Template | None = None  # type: ignore[assignment] # as above
    llm_description: str = Field(default="", validate_default=True)
    scope: Scope = None
    show_on: Any = None

    @field_validator("llm_description")
    @classmethod
    def _told(cls, description: str, checked: ValidationInfo) -> str:
        """Requires a description of a parameter that the model sets. Dify shows no file parameters to a model."""
        is_told = checked.data.get("form") == "llm" and checked.data.get("type") not in declaration.FILES
        if is_told and not description.strip():
            raise _wrong("it is missing: the model reads the parameter's name alone", LOST)
        return description

    @field_validator("type")
    @classmethod
    def _is_known(cls, kind: declaration.ToolParameterType) -> declaration.ToolParameterType:
        if kind in NEWER_TYPES:
            raise _wrong(f"Dify 1.14.2 and older do not know the type {kind}: {BREAKS_THE_LIST}", LOST)
        return kind

    @field_validator("multiple")
    @classmethod
    def _has_several(cls, multiple: bool, checked: ValidationInfo) -> bool:  # noqa: FBT001 - a field's value
        kind = checked.data.get("type")
        if multiple and kind is not None and kind not in OF_SEVERAL:
            several = " and ".join(sorted(OF_SEVERAL))
            raise _wrong(f"only {several} may have it (Dify since 1.16): {BREAKS_THE_LIST}")
        return multiple

    @field_validator("default")
    @classmethod
    def _is_a_list_for_several(cls, default: object, checked: ValidationInfo) -> object:
        kind = checked.data.get("type")
        if kind in OF_SEVERAL and default is not None and isinstance(default, list) != checked.data.get("multiple"):
            raise _wrong(f"it is a list exactly where multiple is true (Dify since 1.16): {BREAKS_THE_LIST}")
        return default

    @field_validator("default")
    @classmethod
    def _fits(cls, default: object, checked: ValidationInfo) -> object:
        """Checks the default only of panel parameters: Dify ignores the default of a parameter that the model sets."""
        if checked.data.get("form") == "form":
            return _fitting(default, checked)
        return default


class _Description(declaration.ToolDescription):
    llm: Annotated[str, Field(min_length=1)]


class _Tool(declaration.ToolDeclaration):
    identity: _Identity
    description: _Description
    parameters: tuple[_ToolParameter, ...] = ()


type _CredentialScope = Literal[
    "all",
    "chat",
    "workflow",
    "completion",
    "custom",
    "builtin",
    "llm",
    "text-embedding",
    "rerank",
    "tts",
    "speech2text",
    "moderation",
    "vision",
]
"""A single scope of a credential. The daemon accepts further scopes, with which Dify's list of tools fails."""


class _Credential(declaration.CredentialField):
    name: str = ""
    scope: _CredentialScope | None = None
    label: I18n
    multiple: bool = False
    default: str | bool | int | float | None = None
    options: tuple[_Option, ...] | None = None
    help: I18n | None = None
    placeholder: I18n | None = None
    url: str | None = None


class _OAuth(DeclarationModel):
    client_schema: tuple[_Credential, ...] = ()
    credentials_schema: tuple[_Credential, ...] = ()


def _of_a_tool(tag: str) -> str:
    if tag in NOT_OF_TOOLS:
        raise _wrong(f"a tool's provider cannot have the tag {tag}: {BREAKS_THE_LIST}")
    return tag


class _ToolProviderIdentity(_ProviderIdentity):
    tags: tuple[Annotated[Tag, AfterValidator(_of_a_tool)], ...] = ()


class _ToolProvider(DeclarationModel):
    identity: _ToolProviderIdentity
    credentials_for_provider: dict[str, _Credential] = Field(default_factory=dict)
    credentials_schema: Any = None
    oauth_schema: _OAuth | None = None
    tools: Annotated[list[str], Field(min_length=1)]
    extra: Any = None


PROVIDERS: Mapping[str, tuple[type[DeclarationModel], str, type[DeclarationModel]]] = {
    "agent_strategies": (_StrategyProvider, "strategies", _Strategy),
    "tools": (_ToolProvider, "tools", _Tool),
}
"""For each kind in the manifest: the rules for a provider, its key with the paths of its parts, and the rules for a
part."""


def faults(kind: type[DeclarationModel], file: str, written: JsonObject) -> Iterator[Problem]:
    """Yields the problems of a declaration, at most one validation error for each field.

    If a field may have several types, pydantic reports it once for each type.
    """
    for way in _switches(written):
        sentence = "YAML reads it as true or false, and Dify as the text True or False: write it in quotes"
        yield Problem("declaration", file, place_of(way), sentence, "notice")
    yield from _same_names(file, written)
    told = set[Way]()
    try:
        kind.model_validate_json(json.dumps(as_sent(written), default=str), strict=True, extra="forbid")
    except ValidationError as error:
        for each in error.errors():
            path = each["loc"]
            sentence = each["msg"]
            level: Level = "notice" if each["type"] in {LOST, "extra_forbidden"} else "refused"
            if path[-1] in {"str", "bool", "int", "float"}:  # pydantic appends the type of a union's branch
                path = path[:-1]
            if each["type"] == "extra_forbidden":
                known = _keys(DeclarationModel)
                languages = f"texts are in {', '.join(LANGUAGES)} only"
                sentence = f"Dify drops it: there is no key {misspelt(path[-1], known)}, and {languages}"
                if path[-1] in known:
                    sentence = f"Dify drops it: the key {path[-1]!r} has its place elsewhere"
            elif each["type"] == "string_type" and isinstance(each["input"], int | float):
                sentence = f"{sentence}: write it in quotes"
            match path, written:
                case ("parameters", int(number), *_), {"parameters": list(parameters)}:
                    name = parameters[number].get("name") if isinstance(parameters[number], dict) else ""
                    sentence += f", in {name}" if name else ""
            if path not in told:
                told.add(path)
                yield Problem("declaration", file, place_of(path), sentence, level)


def _same_names(file: str, written: JsonObject) -> Iterator[Problem]:
    names: list[object] = []
    match written:
        case {"parameters": list(parameters)}:
            names = [each.get("name") for each in parameters if isinstance(each, dict)]
    for number, name in enumerate(names):
        if name is not None and name in names[:number]:
            sentence = f"another parameter is called {name!r}, too: the tool gets one value"
            yield Problem("declaration", file, f"parameters[{number}].name", sentence, "notice")


def _switches(value: object, way: Way = ()) -> Iterator[Way]:
    """Yields the places where the value of an option is a yes or no without quotes."""
    if isinstance(value, dict) and isinstance(value.get("value"), bool):
        yield (*way, "value")
    parts: Iterable[tuple[str | int, object]] = ()
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list):
        parts = enumerate(value)
    for key, part in parts:
        yield from _switches(part, (*way, key))


def _keys(kind: type[DeclarationModel]) -> set[str]:
    """Returns the keys of a model and of all its subclasses."""
    return set(kind.model_fields).union(*map(_keys, kind.__subclasses__()))

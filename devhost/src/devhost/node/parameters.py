"""The parameters of an Agent node as Dify builds them before a run: variables, memory, tools."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from devhost.errors import NodeParameterError, ParameterError, about
from devhost.plugin.casting import FILE_IDENTITY, PLUGIN_FILE, cast_parameter, cast_parameters, is_file
from devhost.plugin.declaration import FILES, Parameter
from devhost.protocol.wire import JsonObject
from devhost.text import json_or

type ToolName = tuple[str, str]
"""The whole id of the provider, author/plugin/provider, and the tool's own name."""


def meant_tool(provider: str, name: str, there_are: Iterable[ToolName]) -> ToolName | None:
    """By the whole id of the provider, else by its last part: a plugin under development may have another author."""
    named = [tool for tool in there_are if tool[1] == name]
    if (provider, name) in named:
        return provider, name
    alike = [tool for tool in named if _last(tool[0]) == _last(provider)]
    return alike[0] if len(alike) == 1 else None


def _last(provider: str) -> str:
    return provider.rpartition("/")[2]


# The variables of the workflow around an Agent node, and what text they become in a template (as in graphon 0.7).

REFERENCE = re.compile(r"\{\{#([a-zA-Z0-9_]{1,50}(?:\.[a-zA-Z_][a-zA-Z0-9_]{0,29}){1,10})#\}\}")
NAME = re.compile(r"[a-zA-Z0-9_]{1,50}\.[a-zA-Z_][a-zA-Z0-9_]{0,29}")
"""What a template can name; of the rest no node can ask."""


@dataclass(frozen=True)
class Variable:
    value: object

    @property
    def text(self) -> str:
        """The text that replaces it in a template."""
        value = self.value
        match value:
            case None | []:
                return ""
            case dict():
                return "" if is_file(value) else json.dumps(value, ensure_ascii=False)
            case list() if all(isinstance(item, str) for item in value):
                return json.dumps(value, ensure_ascii=False)
            case list() if all(is_file(item) for item in value):
                return ""
            case _:  # a list of anything else is written as Python writes it
                return str(value)


class NodeVariables:
    def __init__(self, values: Mapping[str, object]) -> None:
        """`values`: by `node.name`; ParameterError for a name that no selector could name."""
        for name in values:
            if not NAME.fullmatch(name):
                raise ParameterError(
                    f"variable {name!r}: the name must be NODE.NAME, such as start.items (letters, digits and _)"
                )
        self._values = dict(values)

    def get(self, selector: Sequence[str]) -> Variable | None:
        """Two parts name a variable; more go on into an object, or name an attribute of a file."""
        name = ".".join(selector[:2])
        if len(selector) < 2 or name not in self._values:  # noqa: PLR2004 - node and name
            return None
        value = self._values[name]
        for part in selector[2:]:
            key = "filename" if part == "name" and is_file(value) else part
            if not isinstance(value, dict) or key not in value:
                return None
            value = value[key]
        return Variable(value)

    def filled(self, template: str) -> str:
        """References to what does not exist leave their bare selector; text between them that is one is resolved."""
        return "".join(self._part(part) for part in REFERENCE.split(template) if part)

    def _part(self, part: str) -> str:
        variable = self.get(part.split(".")) if "." in part else None
        return part if variable is None else variable.text


# A conversation as the node's memory hands it to a strategy: docs/host-facts.md, "Conversation memory". Tool calls are
# not in it.

WINDOW_TOKENS = 2000
WINDOW_TURNS = 500
CHARACTERS_PER_TOKEN = 4
MEDIA = ("image", "audio", "video", "document")


@dataclass(frozen=True)
class PastTurn:
    question: str
    answer: str
    """The raw answer. Empty for a turn that failed: Dify keeps its question alone."""
    files: tuple[JsonObject, ...] = ()


def messages_of(turns: Iterable[PastTurn]) -> list[JsonObject]:
    """All of them: a node takes a `window` of them."""
    return [message for turn in turns for message in _messages(turn)]


def window(messages: Sequence[JsonObject], tokens: int = WINDOW_TOKENS, turns: int | None = None) -> list[JsonObject]:
    """The newest messages: of so many turns, 500 by default and at most, and of about so many tokens."""
    questions = [position for position, message in enumerate(messages) if message["role"] == "user"]
    kept = messages[questions[-min(turns or WINDOW_TURNS, WINDOW_TURNS, len(questions))] :] if questions else messages
    counted = [_tokens(message) for message in kept]
    dropped = 0
    while sum(counted[dropped:]) > tokens and dropped < len(kept) - 1:
        dropped += 1
    return list(kept[dropped:])


def estimated_tokens(text: str) -> int:
    """Four ASCII characters are about one token, any other character is one. Dify asks the model's own tokenizer."""
    ascii_characters = sum(character.isascii() for character in text)
    return -(-ascii_characters // CHARACTERS_PER_TOKEN) + len(text) - ascii_characters


def files_among(parameters: Mapping[str, object]) -> tuple[JsonObject, ...]:
    """The question's files, from any parameter."""
    values = [item for value in parameters.values() for item in (value if isinstance(value, list) else [value])]
    return tuple(item for item in values if isinstance(item, dict) and item.get("dify_model_identity") == FILE_IDENTITY)


def _messages(turn: PastTurn) -> Iterator[JsonObject]:
    parts = [_part(file) for file in turn.files if file.get("type") in MEDIA]
    question = [*parts, {"type": "text", "data": turn.question}] if parts else turn.question
    yield {"role": "user", "content": question, "name": None}
    yield {"role": "assistant", "content": turn.answer, "name": None, "tool_calls": []}


def _part(file: JsonObject) -> JsonObject:
    kind = file["type"]
    return {
        "type": kind,
        "format": str(file.get("extension") or "").lstrip("."),
        **{name: file.get(name) or "" for name in ("mime_type", "filename", "url", "base64_data")},
        **({"detail": "high"} if kind == "image" else {}),
    }


def _tokens(message: JsonObject) -> int:
    content = message["content"]
    if isinstance(content, str):
        return estimated_tokens(content)
    return sum(estimated_tokens(part.get("data", "")) for part in content)


# The parameters of an Agent node as Dify builds them before a run: resolved from its settings, then cast. A setting is
# written `{"variable": "node.name"}` for a selector and `{"constant": VALUE}` for a constant that looks like one; any
# other value but a `Picked` is a constant.


@dataclass(frozen=True)
class Constant:
    """Dify replaces references in a value of any type; a text may be a template."""

    value: object


@dataclass(frozen=True)
class Selector:
    path: tuple[str, ...]


@dataclass(frozen=True)
class Picked:
    """A model or tools, which the node's own pickers describe: sent as it is."""

    value: object


type Setting = Constant | Selector | Picked


def read_setting(value: object) -> Setting:
    match value:
        case Picked():
            return value
        case {"constant": constant, **rest} if not rest:
            return Constant(constant)
        case {"variable": str(path), **rest} if not rest:
            return Selector(tuple(path.split(".")))
        case {"variable": other, **rest} if not rest:
            raise ParameterError(f"{{variable: {other!r}}}: name the variable as NODE.NAME, such as start.items")
        case _:
            return Constant(value)


def node_parameters(
    declared: Iterable[Parameter], settings: Mapping[str, Setting], variables: NodeVariables
) -> JsonObject:
    """A parameter without a setting gets its default, as one whose setting is empty does."""
    declared, values = list(declared), dict[str, object]()
    for name in (parameter.name for parameter in declared if parameter.name in settings):
        with about(f"param.{name}"):
            values[name] = resolved(settings[name], variables)
    return {name: _sent(value) for name, value in cast_parameters(declared, values).items()}


def _sent(value: object) -> object:
    """A file, or a list of files, as a plugin gets it (dify-api, `convert_parameters_to_plugin_format`)."""
    match value:
        case dict() if is_file(value):
            return {key: value[key] for key in PLUGIN_FILE if key in value}
        case [*files] if files and all(map(is_file, files)):
            return [_sent(file) for file in files]
        case _:
            return value


def resolved(setting: Setting, variables: NodeVariables) -> object:
    """The value before the cast."""
    match setting:
        case Selector(path):
            variable = variables.get(path)
            if variable is None:
                raise NodeParameterError(f"Variable '{list(path)}' does not exist")
            return variable.value
        case Constant(value):
            return _filled(value, variables)
        case Picked(value):
            return value


def _filled(value: object, variables: NodeVariables) -> object:
    """Other values than texts become JSON, are filled as texts are, and are read again."""
    if isinstance(value, str):
        return variables.filled(value)
    try:
        filled = variables.filled(json.dumps(value, ensure_ascii=False))
    except TypeError:
        return variables.filled(str(value))
    return json_or(filled, filled)


# The tools of an Agent node, as Dify sends them to a strategy (dify-api, Agent node's runtime support, 1.17.0).

BY_HAND = 0
"""`auto` of a parameter that the panel sets; the model sets the others, and what is left empty."""


def agent_tools(entries: object, there_are: Sequence[JsonObject], variables: NodeVariables) -> list[JsonObject]:
    """`there_are`: each as a ToolEntity's JSON."""
    filled = resolved(Constant(entries or []), variables)
    if not isinstance(filled, list):
        raise NodeParameterError("a variable's text in the settings of a tool breaks the JSON of the tools")
    return [_tool(entry, there_are, variables) for entry in enabled_tools(filled)]


def enabled_tools(entries: object) -> list[JsonObject]:
    listed = entries if isinstance(entries, list) else []
    return [entry for entry in listed if isinstance(entry, dict) and entry.get("enabled")]


def _tool(entry: JsonObject, there_are: Sequence[JsonObject], variables: NodeVariables) -> JsonObject:
    entity = _entity(str(entry.get("provider_name")), str(entry.get("tool_name")), there_are)
    parameters = _values(entry.get("parameters") or {}, variables, auto=BY_HAND)
    by_hand = {name: value for name, value in parameters if value is not None}
    settings = dict(_values(entry.get("settings") or {}, variables))
    declared = [Parameter.model_validate(parameter) for parameter in entity["parameters"]]
    for parameter in declared:
        if parameter.required and parameter.type in FILES:
            raise NodeParameterError(f"file type parameter {parameter.name} not supported in agent")
    described = (entry.get("extra") or {}).get("description") or entity["description"]["llm"]
    return {
        **entity,
        "parameters": [
            {**parameter, "form": "form"} if parameter["name"] in by_hand else parameter
            for parameter in entity["parameters"]
        ],
        "description": {**entity["description"], "llm": described},
        "runtime_parameters": {
            **{
                parameter.name: cast_parameter(parameter, settings.get(parameter.name))
                for parameter in declared
                if parameter.form == "form"
            },
            **by_hand,  # Dify casts these only when the tool is called
        },
        "credential_id": entry.get("credential_id"),
    }


def _entity(provider: str, name: str, there_are: Sequence[JsonObject]) -> JsonObject:
    by_name = {(tool["identity"]["provider"], tool["identity"]["name"]): tool for tool in there_are}
    found = meant_tool(provider, name, by_name)
    if found is None:
        raise NodeParameterError(f"tool {name} of provider {provider} not found")
    return by_name[found]


def _values(
    panel: Mapping[str, object], variables: NodeVariables, auto: int | None = None
) -> Iterator[tuple[str, object]]:
    """Of those with this `auto`, if any."""
    for name, setting in panel.items():
        held = setting if isinstance(setting, dict) else {"value": setting}
        if auto is None or held.get("auto") == auto:
            yield name, _value(held.get("value"), variables)


def _value(value: object, variables: NodeVariables) -> object:
    """Templates are filled already; older nodes hold the value itself."""
    match value:
        case {"type": "variable", "value": list(path)}:
            return resolved(Selector(tuple(map(str, path))), variables)
        case {"type": "mixed" | "constant", "value": inner}:
            return inner
        case _:
            return value

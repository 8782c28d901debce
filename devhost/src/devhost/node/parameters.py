"""Builds the parameters of an Agent node as Dify does before a run, from variables, memory and settings."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from devhost.errors import NodeParameterError, ParameterError, about
from devhost.plugin.casting import FILE_IDENTITY, PLUGIN_FILE, cast_parameters, is_file
from devhost.plugin.declaration import Parameter
from devhost.protocol.wire import JsonObject
from devhost.text import json_or
from devhost.words import refuse_unknown

# The variables of the workflow around an Agent node, and their text in a template (as in graphon 0.7).

REFERENCE = re.compile(r"\{\{#([a-zA-Z0-9_]{1,50}(?:\.[a-zA-Z_][a-zA-Z0-9_]{0,29}){1,10})#\}\}")
NAME = re.compile(r"[a-zA-Z0-9_]{1,50}\.[a-zA-Z_][a-zA-Z0-9_]{0,29}")
"""The names of variables that a template can use. No node can use any other variable."""


def _text(value: object) -> str:
    """Returns the text that replaces a variable in a template."""
    match value:
        case None | []:
            return ""
        case dict():
            if is_file(value):
                return ""
            return json.dumps(value, ensure_ascii=False)
        case list() if all(isinstance(item, str) for item in value):
            return json.dumps(value, ensure_ascii=False)
        case list() if all(is_file(item) for item in value):
            return ""
        case _:  # any other list is formatted as in Python
            return str(value)


class NodeVariables:
    """The variables of the workflow that an Agent node can use."""

    def __init__(self, values: Mapping[str, object]) -> None:
        """`values` are keyed by `node.name`. Raises ParameterError for a name that a selector cannot have."""
        for name in values:
            if not NAME.fullmatch(name):
                raise ParameterError(
                    f"variable {name!r}: the name must be NODE.NAME, such as start.items (letters, digits and _)"
                )
        self._values = dict(values)

    def get(self, selector: Sequence[str]) -> object:
        """Returns the value at a selector.

        The first two parts name a variable. Further parts are keys of an object or attributes of a file.

        `[START, sys.query]` is the system variable, which the Start node outputs under its full name.
        """
        value: object = self._values
        name = ".".join(selector[:2])
        if "." in "".join(selector[1:2]):
            name = selector[1]
        for part in (name, *selector[2:]):
            key = part
            if part == "name" and is_file(value):
                key = "filename"
            if not isinstance(value, dict) or key not in value:
                raise NodeParameterError(f"Variable '{list(selector)}' does not exist")
            value = value[key]
        return value

    def filled(self, value: object) -> object:
        """Replaces the references in a value of any type. A value that is not a string is filled as JSON, then parsed.

        A reference to a missing variable leaves its bare selector. Text between references that is itself a selector is
        resolved, too.
        """
        if isinstance(value, str):
            return self._text(value)
        try:
            text = self._text(json.dumps(value, ensure_ascii=False))
        except TypeError:
            return self._text(str(value))
        return json_or(text, text)

    def _text(self, template: str) -> str:
        return "".join(self._part(part) for part in REFERENCE.split(template) if part)

    def _part(self, part: str) -> str:
        try:
            return _text(self.get(part.split(".")))
        except NodeParameterError:
            return part


# A conversation as the node's memory passes it to a strategy, without tool calls: docs/host-facts.md, "Conversation
# memory".

WINDOW_TOKENS = 2000
WINDOW_TURNS = 500
CHARACTERS_PER_TOKEN = 4
MEDIA = ("image", "audio", "video", "document")


@dataclass(frozen=True)
class PastTurn:
    """An earlier turn of the conversation."""

    question: str
    answer: str
    """The raw answer; empty for a failed turn, of which Dify keeps only the question."""
    files: tuple[JsonObject, ...] = ()


def messages_of(turns: Iterable[PastTurn]) -> list[JsonObject]:
    """Returns the messages of all turns. A node uses only a `window` of these messages."""
    messages: list[JsonObject] = []
    for turn in turns:
        parts = [_part(file) for file in turn.files if file.get("type") in MEDIA]
        question = [*parts, {"type": "text", "data": turn.question}] if parts else turn.question
        messages.append({"role": "user", "content": question, "name": None})
        messages.append({"role": "assistant", "content": turn.answer, "name": None, "tool_calls": []})
    return messages


def window(messages: Sequence[JsonObject], tokens: int = WINDOW_TOKENS, turns: int | None = None) -> list[JsonObject]:
    """Returns the newest messages, limited by turns (500 by default and at most) and by an estimate of tokens."""
    questions = [position for position, message in enumerate(messages) if message["role"] == "user"]
    kept = messages
    if questions:
        kept = messages[questions[-min(turns or WINDOW_TURNS, WINDOW_TURNS, len(questions))] :]
    counted = [_tokens(message) for message in kept]
    dropped = 0
    while sum(counted[dropped:]) > tokens and dropped < len(kept) - 1:
        dropped += 1
    return list(kept[dropped:])


def estimated_tokens(text: str) -> int:
    """Estimates tokens: four ASCII characters count as one token, and so does any other character.

    Dify uses the model's own tokenizer.
    """
    ascii_characters = sum(character.isascii() for character in text)
    return -(-ascii_characters // CHARACTERS_PER_TOKEN) + len(text) - ascii_characters


def files_among(parameters: Mapping[str, object]) -> tuple[JsonObject, ...]:
    """Returns the question's files, from all parameters."""
    values = [item for value in parameters.values() for item in (value if isinstance(value, list) else [value])]
    return tuple(item for item in values if isinstance(item, dict) and item.get("dify_model_identity") == FILE_IDENTITY)


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


# The parameters of an Agent node are resolved from its settings and then cast, as Dify does before a run. A setting
# `{"variable": "node.name"}` is a selector. `{"constant": VALUE}` is a constant, even if VALUE looks like a selector.
# Any other value is a constant, too, except a `PickedValue`.


@dataclass(frozen=True)
class PickedValue:
    """A value from the node's picker for a model or for tools, which is sent unchanged."""

    value: object


@dataclass(frozen=True)
class UndeclaredValue:
    """A parameter that a saved node sets but its strategy lacks, for example after an upgrade. Dify sends null."""


def is_marked(setting: object) -> bool:
    """Returns whether a setting is marked as a variable or a constant."""
    return isinstance(setting, dict) and list(setting) in (["variable"], ["constant"])


def resolved(setting: object, variables: NodeVariables) -> object:
    """Returns a value before it is cast. Dify replaces references in constants of any type, even within a string."""
    match setting:
        case PickedValue(value):
            return value
        case UndeclaredValue():
            return None
        case {"variable": str(path), **rest} if not rest:
            return variables.get(path.split(".") if path else [])
        case {"variable": list(path), **rest} if not rest:
            return variables.get([str(part) for part in path])
        case {"variable": other, **rest} if not rest:
            raise ParameterError(f"{{variable: {other!r}}}: name the variable as NODE.NAME, such as start.items")
        case {"constant": value, **rest} if not rest:
            return variables.filled(value)
        case _:
            return variables.filled(setting)


def node_parameters(
    declared: Iterable[Parameter], settings: Mapping[str, object], variables: NodeVariables
) -> JsonObject:
    """Resolves and casts the settings. A parameter without a setting, or with an empty one, gets its default.

    Raises ParameterError for a setting of an undeclared parameter, and for a value that Dify's node refuses.
    """
    declared = list(declared)
    names = [parameter.name for parameter in declared]
    values = dict[str, object]()
    undeclared = dict[str, None]()
    for name, setting in settings.items():
        with about(f"param.{name}"):
            if isinstance(setting, UndeclaredValue):
                undeclared[name] = None
                continue
            refuse_unknown("parameter", name, names)
            values[name] = resolved(setting, variables)
    return {**{name: sent(value) for name, value in cast_parameters(declared, values).items()}, **undeclared}


def sent(value: object) -> object:
    """Converts a file or a list of files for a plugin, as `convert_parameters_to_plugin_format` of dify-api does."""
    match value:
        case dict() if is_file(value):
            return {key: value[key] for key in PLUGIN_FILE if key in value}
        case [*files] if files and all(map(is_file, files)):
            return [sent(file) for file in files]
        case _:
            return value

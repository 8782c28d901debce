"""The parameters of an Agent node as Dify builds them before a run: variables, memory, settings."""

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

# The variables of the workflow around an Agent node, and what text they become in a template (as in graphon 0.7).

REFERENCE = re.compile(r"\{\{#([a-zA-Z0-9_]{1,50}(?:\.[a-zA-Z_][a-zA-Z0-9_]{0,29}){1,10})#\}\}")
NAME = re.compile(r"[a-zA-Z0-9_]{1,50}\.[a-zA-Z_][a-zA-Z0-9_]{0,29}")
"""What a template can name; of the rest no node can ask."""


def _text(value: object) -> str:
    """The text that replaces a variable in a template."""
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

    def get(self, selector: Sequence[str]) -> object:
        """Two parts name a variable; more go on into an object, or name an attribute of a file.

        `[START, sys.query]` is the system variable: the Start node puts it out under its whole name.
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
        """Its references replaced, in a value of any type; what is not a text is filled as JSON, and read again.

        References to what does not exist leave their bare selector; text between them that is one is resolved.
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
    messages: list[JsonObject] = []
    for turn in turns:
        parts = [_part(file) for file in turn.files if file.get("type") in MEDIA]
        question = [*parts, {"type": "text", "data": turn.question}] if parts else turn.question
        messages.append({"role": "user", "content": question, "name": None})
        messages.append({"role": "assistant", "content": turn.answer, "name": None, "tool_calls": []})
    return messages


def window(messages: Sequence[JsonObject], tokens: int = WINDOW_TOKENS, turns: int | None = None) -> list[JsonObject]:
    """The newest messages: of so many turns, 500 by default and at most, and of about so many tokens."""
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
    """Four ASCII characters are about one token, any other character is one. Dify asks the model's own tokenizer."""
    ascii_characters = sum(character.isascii() for character in text)
    return -(-ascii_characters // CHARACTERS_PER_TOKEN) + len(text) - ascii_characters


def files_among(parameters: Mapping[str, object]) -> tuple[JsonObject, ...]:
    """The question's files, from any parameter."""
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


# The parameters of an Agent node as Dify builds them before a run: resolved from its settings, then cast. A setting is
# written `{"variable": "node.name"}` for a selector and `{"constant": VALUE}` for a constant that looks like one; any
# other value but a `PickedValue` is a constant.


@dataclass(frozen=True)
class PickedValue:
    """A model or tools, which the node's own pickers describe: sent as it is."""

    value: object


@dataclass(frozen=True)
class UndeclaredValue:
    """What a saved node sets and its strategy does not have, as after an upgrade: Dify sends null."""


def is_marked(setting: object) -> bool:
    """Whether it says what it is: a variable, or a constant."""
    return isinstance(setting, dict) and list(setting) in (["variable"], ["constant"])


def resolved(setting: object, variables: NodeVariables) -> object:
    """The value before the cast. Dify replaces references in a constant of any type; a text may be a template."""
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
    """A parameter without a setting gets its default, as one whose setting is empty does.

    ParameterError for a setting of a parameter that is not declared, and for a value that Dify's node refuses.
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
    """A file, or a list of files, as a plugin gets it (dify-api, `convert_parameters_to_plugin_format`)."""
    match value:
        case dict() if is_file(value):
            return {key: value[key] for key in PLUGIN_FILE if key in value}
        case [*files] if files and all(map(is_file, files)):
            return [sent(file) for file in files]
        case _:
            return value

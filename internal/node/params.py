"""Parses the node's parameters from every form in which Dify sends them.

A value that the user did not set ('' / None / [] / [None] / no key) becomes the default. An unusable value is changed
and noted in the log. Texts are made well-formed, and ``redacted`` replaces the node's secrets in everything that the
model reads.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Self

from dify_plugin.file.file import File
from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, PrivateAttr, model_validator

from internal.clock import in_turns, in_turns_if_many
from internal.errors import Note, OurWords, Quoting, Sentence
from internal.json_values import members
from internal.node.model import ModelSelection
from internal.text.secrets import Redactor, looks_secret, texts_in
from internal.text.texts import (
    MAX_NAMED,
    looks_like_selector,
    missing_variable,
    parse_pasted,
    read_pasted,
    wellformed_json,
)

_ON = {"true", "yes", "y", "1", "on"}
_OFF = {"false", "no", "n", "0", "off"}
_TAG = re.compile(r"[<\[◁]\S{2,49}")
_PAIR = 2
_SEPARATOR = re.compile(r"[,，、\n]")

# Readers receive a value that was set, the default, and a function that notes problems with the value.


@dataclass(frozen=True)
class Limits:
    """Reads an integer. Without ``most`` there is no maximum, and 0 switches the limit off."""

    least: int
    most: int | None = None

    def __call__(self, value: Any, default: int, note: Note) -> int:  # noqa: ANN401 - JSON
        try:
            if isinstance(value, bool):
                number = math.nan
            else:
                number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        clamped = min(max(number, self.least), math.inf if self.most is None else self.most)
        if not math.isfinite(clamped):
            note(OurWords(f"not a number; {self._named(default)} is used"))
            return default
        if number != clamped:
            if self.most is None:
                allowed = f"below {self.least}"
            else:
                allowed = f"outside {self.least} to {self.most}"
            note(Quoting(f"{number:g} is {allowed}; {self._named(clamped)} is used"))
        return max(int(clamped), math.ceil(min(clamped, 1)))  # 0.4 is a limit, but 0 may mean no limit

    def _named(self, number: float) -> str:
        if number == 0 and self.most is None:
            return "0, which means no limit,"
        return f"{number}"


@dataclass(frozen=True)
class Items[T]:
    """Reads a list item by item, so that a bad item does not affect the others."""

    read: Callable[[Any], T]

    def __call__(self, value: object, _default: object, note: Note) -> tuple[T, ...]:
        items = list[T]()
        listed = value if isinstance(value, list) else [value]
        for position, item in enumerate(in_turns_if_many(listed), start=1):
            try:
                if item not in (None, ""):
                    items += [self.read(item)]
            except (TypeError, ValueError):
                note(OurWords(f"item {position} cannot be read and is left out"))
        return tuple(items)


def _text(value: object, *_: object) -> str:
    """Return the value as text. Dify parses a template that happens to be JSON, so this is turned back into text."""
    if _was_left_alone(value):
        return ""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _switch(value: object, default: bool, note: Note) -> bool:  # noqa: FBT001 - as all readers
    word = str(value).strip().lower()
    if word not in _ON | _OFF:
        note(OurWords(f"neither true nor false; {str(default).lower()} is used"))
        return default
    return word in _ON


def _names(value: object, *_: object) -> tuple[str, ...]:
    """Parse names from a list, from the text of a list, or from a text with commas (of any script) or line ends."""
    return tuple(in_turns(_each_name(value)))


def _each_name(value: object) -> Iterator[str]:
    for entry in value if isinstance(value, list) else [value]:
        text = read_pasted(_text(entry))
        try:
            pasted = None
            if text.lstrip().startswith("["):
                pasted = parse_pasted(text)
        except (ValueError, RecursionError):
            pasted = None
        for item in pasted if isinstance(pasted, list) else [text]:
            yield from (name.strip() for name in _SEPARATOR.split(_text(item)) if name.strip())


def _guarded_names(value: object, *_: object) -> tuple[str, ...]:
    """Parse names of tools. A text without a name is kept, so that it raises an error instead of meaning "no tool"."""
    said = ""
    if isinstance(value, str):
        said = value.strip()
    return _names(value) or ((said,) if said else ())


class ExtraOutput(StrEnum):
    """The variables that a run outputs only if the node names them."""

    STATE = "state"
    TOOL_RESULTS = "tool_results"
    THOUGHTS = "thoughts"


class CallForm(StrEnum):
    """The form in which the model makes its tool calls."""

    AUTO = "auto"
    NATIVE = "native"
    TEXT = "text"


def _call_form(value: object, default: CallForm, note: Note) -> CallForm:
    word = _text(value).strip().casefold()
    if word not in list(CallForm):
        note(Quoting(f"{word!r} is ignored; the values are {', '.join(CallForm)}"))
        return default
    return CallForm(word)


def _thought_tags(value: object, default: tuple[str, ...], note: Note) -> tuple[str, ...]:
    """Parse an opening and a closing tag. For <x> and [x] the closing tag is derived."""
    tags = _text(value).split()
    if len(tags) == 1 and tags[0][-1] in ">]":
        tags.append(f"{tags[0][:1]}/{tags[0][1:]}")
    if tags and not (len(tags) == len(set(tags)) == _PAIR and all(map(_TAG.fullmatch, tags))):
        note(Quoting(f"{_text(value)!r} is ignored; write two tags, such as <thought> </thought>"))
        return default
    return tuple(tags)


def _extra_outputs(value: object, _default: object, note: Note) -> frozenset[ExtraOutput]:
    """Parse names of variables in upper or lower case. Unknown names are noted."""
    known = [choice.value for choice in ExtraOutput]
    names = list(dict.fromkeys(_names(value)))
    unknown = [name for name in in_turns_if_many(names) if name.casefold() not in known]
    if unknown:
        named = ", ".join(map(repr, unknown[:MAX_NAMED]))
        if len(unknown) > MAX_NAMED:
            named += f" and {len(unknown) - MAX_NAMED:,} more"
        note(Quoting(f"{named} is ignored; the names are {', '.join(known)}"))
    wanted = frozenset(map(str.casefold, names))
    return frozenset(choice for choice in ExtraOutput if choice.value in wanted)


Text = Annotated[str, _text]
Switch = Annotated[bool, _switch]

_FROM_VARIABLES = ("tools", "instruction", "context", "files", "answer_criteria", "approval", "extra_outputs")
"""Parameters in which the selector of a missing variable is noted. The query is not included, because a user may have
typed it."""


class StrategyParams(BaseModel):
    """The parameters of one run, in the order in which the strategy declares them (see docs/parameters.md).

    The type of a field names its reader. A value without a reader is taken unchanged. Only a missing model is an error.
    """

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True, hide_input_in_errors=True, defer_build=True)

    model: ModelSelection
    tools: Annotated[tuple[Mapping[str, Any], ...], Items(dict)] = ()
    """The tools as Dify sends them, unchecked."""
    instruction: Text = ""
    query: Text = ""
    context: Any = None
    """The context: a str, a dict, or a list of either, as the knowledge node outputs it."""
    files: Annotated[tuple[File, ...], Items(File.model_validate)] = ()
    skills: Text = ""
    """Documents in the form of SKILL.md, written by the developer."""
    approval_required: Annotated[tuple[str, ...], _guarded_names] = ()
    """Tools that need an approval: names, ``provider/name`` or ``*``. Empty means no tool."""
    approval: Text = ""
    state: Text = ""
    answer_schema: Text = ""
    answer_tools: Annotated[tuple[str, ...], _guarded_names] = ()
    """Tools whose results are the answer, in the same format as ``approval_required``."""
    answer_criteria: Text = ""
    show_sources: Switch = True
    emit_intermediate_thoughts: Switch = False
    maximum_iterations: Annotated[int, Limits(1, 100)] = 6
    maximum_seconds: Annotated[int, Limits(30, 3_600)] = 540
    maximum_total_tokens: Annotated[int, Limits(0)] = 0
    maximum_tool_calls: Annotated[int, Limits(0)] = 0
    tool_result_limit: Annotated[int, Limits(1_000, 200_000)] = 20_000
    allowed_tools: Annotated[tuple[str, ...], _names] = ()
    """Tools that the model may use: names or ``provider/name``. Empty allows all tools."""
    tools_in_prompt: Annotated[int, Limits(0, 500)] = 40
    """If there are more tools, prompts offer only the first ones, and the model searches for the others."""
    tool_calls: Annotated[CallForm, _call_form] = CallForm.AUTO
    """``auto`` means native calls if the model supports them, and otherwise calls in text."""
    thought_tags: Annotated[tuple[str, ...], _thought_tags] = ()
    """Tags that enclose the model's thoughts in addition to ``<think>``: none, or an opening and a closing tag."""
    parallel_tool_calls: Annotated[int, Limits(1, 16)] = 8
    fallback_model: Text = ""
    prompt_policy_overrides: Text = ""
    extra_outputs: Annotated[frozenset[ExtraOutput], _extra_outputs] = frozenset()

    _notes: tuple[Sentence, ...] = PrivateAttr(default=())

    @property
    def notes(self) -> tuple[Sentence, ...]:
        """Sentences for the log about values that were changed or ignored."""
        return self._notes

    @property
    def puts_out_state(self) -> bool:
        """Whether a later run can continue this one."""
        return bool(self.approval_required) or ExtraOutput.STATE in self.extra_outputs

    def redacted(self, secrets: Redactor) -> Self:
        """Return a copy without the node's secrets in everything that the model reads.

        ``runtime_parameters`` stay unchanged for the tools. ``state`` stays too: it is encoded, and redacted when it is
        decoded.
        """
        if not secrets:
            return self
        return self.model_copy(
            update={
                **{name: secrets.text(value) for name, value in self if type(value) is str and name != "state"},
                "answer_schema": secrets.json_text(self.answer_schema),
                "context": secrets.json(self.context),
                "tools": tuple(_redacted_tool(tool, secrets) for tool in self.tools),
                "files": tuple(
                    file.model_copy(update={"filename": file.filename and secrets.text(file.filename)})
                    for file in self.files
                ),
                "model": self.model.redacted(secrets),
            }
        )

    @model_validator(mode="wrap")
    @classmethod
    def _read_leniently(cls, raw: Mapping[str, Any], build: ModelWrapValidatorHandler[Self]) -> Self:
        notes: list[Sentence] = []
        fields = cls.model_fields
        given = wellformed_json({name: _as_json(raw.get(name)) for name in fields})
        for name in _FROM_VARIABLES:
            is_query = name == "approval" and _text(given[name]).strip() == _text(given["query"]).strip()
            if looks_like_selector(given[name]) and not is_query:
                notes.append(Quoting(f"{name}: {missing_variable(str(given[name]))}"))
                if name in ("approval", "extra_outputs"):
                    given[name] = None
        values: dict[str, object] = {"model": ModelSelection.read(given.pop("model"), notes.append)}
        for name, value in in_turns(given.items()):
            if not _was_left_alone(value):
                field = fields[name]
                about = list[Sentence]()
                if field.metadata:
                    values[name] = field.metadata[0](value, field.default, about.append)
                else:
                    values[name] = value
                notes += [note.of(name) for note in about]
        params = build(values)
        params._notes = tuple(notes)  # noqa: SLF001 - a private attribute of this class, not a field
        return params


def _was_left_alone(value: object) -> bool:
    return value is None or value in ("", [], [None], {})


def _as_json(value: object) -> object:
    """Return a parameter as the host sent it. The SDK converts files, alone or in a list, to File objects."""
    if isinstance(value, list):
        return [_as_json(item) if isinstance(item, BaseModel) else item for item in value]
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", serialize_as_any=True)
    return value


SECRET_TYPE = "secret-input"  # noqa: S105 - Dify's name of a type
_PUBLIC_TYPES = frozenset({"select", "boolean", "checkbox", "number"})
"""Types whose values are never secret: choices that the tool declares, or numbers such as ``max_token``."""


def node_secrets(raw_tools: Iterable[Mapping[str, Any]]) -> Redactor:
    """Return a redactor for every secret that the developer set."""
    return Redactor.of(secret for raw in raw_tools for _, _, secrets in _values_of(raw) for secret in secrets)


def public_values(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that the developer set in a tool, except for those that are or contain a secret."""
    return {name: value for name, value, secrets in _values_of(raw) if not secrets}


def _values_of(raw: Mapping[str, Any]) -> Iterator[tuple[str, Any, list[str]]]:
    """Yield each value that the developer set, with the secrets in it."""
    runtime = raw.get("runtime_parameters")
    listed = raw.get("parameters")
    declared = []
    if isinstance(listed, list):
        declared = [item for item in listed if isinstance(item, Mapping)]
    kinds = {str(item.get("name")): str(item.get("type")) for item in declared}
    for name, value in in_turns_if_many(runtime.items()) if isinstance(runtime, Mapping) else ():
        kind = kinds.get(name)
        if kind == SECRET_TYPE:
            yield name, value, ["", *texts_in(value)]  # never public, even if it contains no text
        else:
            yield name, value, [] if kind in _PUBLIC_TYPES else list(_named({name: value}))


def _named(value: object) -> Iterator[str]:
    """Yield all values below a name of a secret."""
    for name, item in members(value):
        if looks_secret(name):
            yield from texts_in(item)


def _redacted_tool(tool: Mapping[str, Any], secrets: Redactor) -> Mapping[str, Any]:
    """Return the declaration without secrets in the parts that the model sees. Defaults are not shown and stay."""
    description, parameters = secrets.values([tool.get("description"), tool.get("parameters")])
    for shown, own in zip(parameters or (), tool.get("parameters") or (), strict=True):
        if isinstance(own, dict) and "default" in own:
            shown["default"] = own["default"]
    return {**tool, "description": description, "parameters": parameters}

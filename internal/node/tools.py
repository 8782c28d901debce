"""The node's tools as the model sees them, and the mapping from their names back to the host's tools."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, count
from typing import Any

from dify_plugin.entities.model.message import PromptMessageTool
from dify_plugin.entities.tool import ToolProviderType
from dify_plugin.file.file import File

from internal.clock import in_turns
from internal.errors import InvalidParameters, Note, OurWords, Quoting, Sentence
from internal.node.offered import may_be_an_option, offered_schema, safe_names, safe_property_names, with_property_names
from internal.node.params import SECRET_TYPE, public_values
from internal.node.schema import REMARKS, Check, SchemaUnusable, check_of, kept, pattern_weight, rewritten
from internal.text.texts import MAX_NAMED, listed, looks_like_selector, missing_variable
from prompt import template

_NAME_LENGTH = 64
_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_BEGINS_A_NAME = re.compile(r"[a-zA-Z]")


def _matching_entries(name: str, provider: str, allowed: frozenset[str]) -> frozenset[str]:
    """Return the allow-list entries that match this tool.

    An entry is the name of the tool, or ``provider/name`` with the full provider or its end.
    """
    parts = [*provider.split("/"), name]
    return allowed & {"/".join(parts[start:]) for start in range(len(parts))}


def name_in_history(name: str) -> str:
    """Return the name of a call in a form that model APIs accept. A model may invent a tool with any name.

    A name that does not begin with a letter gets the prefix ``tool_`` (docs/model-facts.md, "Names and schemas that
    APIs refuse").
    """
    plain = _NOT_IN_A_NAME.sub("_", name[:_NAME_LENGTH]) or "unnamed"
    if not _BEGINS_A_NAME.match(plain):
        plain = f"tool_{plain}"
    return plain[:_NAME_LENGTH]


def _free_name(name: str, provider: str, taken: Iterable[str]) -> str:
    """Return a unique name that model APIs accept. Tools with the same name get their provider's name as a prefix."""
    plain = name_in_history(name)
    if not re.search(r"[a-zA-Z0-9]", plain):
        plain = "tool"
    numbered = (f"{plain[: _NAME_LENGTH - len(str(number)) - 1]}_{number}" for number in count(2))
    candidates = chain([plain, name_in_history(f"{provider.rsplit('/', 1)[-1]}_{plain}")], numbered)
    unavailable = frozenset(taken)
    return next(each for each in candidates if each not in unavailable)


def name_files(files: Iterable[File]) -> dict[str, File]:
    """Return a distinct, readable name for each of this turn's files."""
    named: dict[str, File] = {}
    for position, file in enumerate(files, start=1):
        name = file.filename or f"{file.type.value}-{position}{file.extension or ''}"
        free = next(each for each in chain([name], (f"{number}-{name}" for number in count(2))) if each not in named)
        named[free] = file
    return named


_STRINGS = ("string", SECRET_TYPE, "text-input", "select", "dynamic-select", "date")
_PLAIN_TYPES: Mapping[str, Mapping[str, Any]] = {
    **{kind: {"type": "string"} for kind in _STRINGS},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "checkbox": {"type": "boolean"},
    "object": {"type": "object"},
    "array": {"type": "array", "items": {}},
    "any": {},
    "date-range": {"type": "object", "properties": {"start": {"type": "string"}, "end": {"type": "string"}}},
}
_FILES = frozenset({"file", "files"})
_TYPES_OF: Mapping[str, tuple[type, ...]] = {"string": (str,), "number": (int, float), "boolean": (bool,)}


class _Unusable(Exception):  # noqa: N818 - the name says what is wrong
    """Raised for a parameter or tool that cannot be offered to a model. The message quotes nothing."""


@dataclass(frozen=True)
class ToolParameter:
    """A parameter that the model fills in."""

    name: str
    """The name that the model sees: unique in the tool, and ``^[a-zA-Z0-9_.-]{1,64}$`` unless the parameter is
    secret."""
    own_name: str
    """The name that the tool uses."""
    schema: Mapping[str, Any]
    required: bool = False
    default: object = None
    takes_files: bool = False
    """Whether its values are names of this turn's files."""
    is_number: bool = False
    """Whether the parameter is a number. Dify also reads numbers from text, without rounding them."""
    is_secret: bool = False
    """Whether the model's values for it must stay out of log, text and variables."""
    own_check: Check | None = None
    """The check of an MCP tool's own schema."""

    @cached_property
    def check(self) -> Check:
        return self.own_check or check_of(self.schema)

    def plainly_takes(self, value: object) -> bool:
        """Return whether the value has the type of the parameter, and the schema has no other condition.

        In this case the validation library, which takes 8 MB and 12 ms to import, is not needed.
        """
        if self.own_check is not None or self.schema.keys() - {"type", "description"}:
            return False
        return type(value) in _TYPES_OF.get(self.schema.get("type", ""), ())

    @property
    def takes_results(self) -> bool:
        """Whether another tool's result can be its value: free text, an object, or a list."""
        kinds = self.schema.get("type", "object")
        is_open = not (self.takes_files or "enum" in self.schema or "const" in self.schema)
        return is_open and any(kind in kinds for kind in ("string", "object", "array"))

    @property
    def takes_null(self) -> bool:
        """Whether null is a valid value. For other parameters, models write null to leave them out."""
        return self.own_check is not None and self.own_check.surely_accepts(None)


def _read_parameter(raw: Mapping[str, Any], name: str, file_names: Sequence[str], note: Note) -> ToolParameter:
    """Read a parameter that the model fills in, under this name; raises ``_Unusable``."""
    kind = raw["type"]
    if raw.get("default") == "":
        default = None
    else:
        default = raw.get("default")
    schema = _plain_schema(raw, file_names)
    check = None
    if (own := raw.get("input_schema")) and kind not in _FILES:
        try:
            usable, checked, notes = _usable(own)
            check = check_of(checked)
            schema = {key: usable[key] for key in usable if key != "$schema"}
            for each in notes:
                note(each)
        except SchemaUnusable as broken:
            note(Quoting(f"its own schema is not used: {broken}"))
    description = raw.get("llm_description")
    if description and not schema.get("description"):
        schema = {**schema, "description": description}
    return ToolParameter(
        name=name,
        own_name=raw["name"],
        schema=schema,
        # If there is a default, the model need not give a value.
        required=bool(raw.get("required")) and default is None,
        default=default if raw.get("required") else None,
        takes_files=kind in _FILES,
        is_number=kind == "number",
        is_secret=kind == SECRET_TYPE,
        own_check=check,
    )


@kept
def _usable(own: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], list[Sentence]]:
    """Return a schema without its unusable parts, the part of it that is checked, and a note on each unusable part.

    An enum that no value of its type can satisfy is not checked. Dify does not send the targets of references
    (docs/host-facts.md, "The tools parameter").
    """
    notes: list[Sentence] = []

    def checkable(part: Mapping[str, Any]) -> Mapping[str, Any]:
        if isinstance(part.get("$ref"), str):
            lost = {"$ref"}
        else:
            lost = set[str]()
        notes.extend(Quoting(f"nothing is checked there: {part[key][:100]!r} is not sent by Dify") for key in lost)
        if isinstance(pattern := part.get("pattern"), str):
            try:
                pattern_weight(pattern)
            except SchemaUnusable as reason:
                notes.append(Quoting(f"nothing is checked there: {reason}"))
                lost.add("pattern")
        return {key: value for key, value in part.items() if key not in lost}

    def satisfiable(part: Mapping[str, Any]) -> Mapping[str, Any]:
        if may_be_an_option(part):
            return part
        notes.append(Quoting(f"its options are not checked: no value of the type {part['type']!r} is one of them"))
        return {key: value for key, value in part.items() if key != "enum"}

    schema = rewritten(own, checkable)
    if not schema.keys() - REMARKS:
        raise SchemaUnusable("; ".join([*notes, "nothing is left of it"]))
    return schema, rewritten(schema, satisfiable), notes


def _plain_schema(raw: Mapping[str, Any], file_names: Sequence[str]) -> dict[str, Any]:
    kind = raw["type"]
    if kind in _FILES and not file_names:
        raise _Unusable("it takes a file, and this turn has none")
    if kind in _FILES:
        one = {"type": "string", "enum": list(file_names)}
        if kind == "file":
            return one
        return {"type": "array", "items": one}
    if kind not in _PLAIN_TYPES:
        raise _Unusable(f"a model cannot fill in the type {kind!r}")
    schema = dict(_PLAIN_TYPES[kind])
    if kind == "select" and raw.get("options"):
        schema["enum"] = [option["value"] for option in in_turns(raw["options"])]
        if raw.get("multiple"):
            return {"type": "array", "items": schema}
        return schema
    if kind == "number":
        bounds = {"minimum": raw.get("min"), "maximum": raw.get("max")}
        schema |= {word: bound for word, bound in bounds.items() if bound is not None}
    return schema


EVERY_TOOL = "*"
_FIRST_OFFERED = 20
"""Number of tools that prompts offer from the beginning if they do not offer all (docs/many-tools.md)."""


type Lookup = Callable[[Mapping[str, Any]], tuple[str, OurWords | None]]
"""A function that answers a call with valid arguments. It returns the text for the model and, if the call failed, the
reason for the log."""


@dataclass(frozen=True)
class Tool:
    """One tool: its description for the model, and the data that is needed to call it."""

    name: str
    """The name that the model sees: unique in the toolbox, ``^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$``."""
    own_name: str
    """The name that Dify uses."""
    provider: str
    provider_type: ToolProviderType = ToolProviderType.BUILT_IN
    credential_id: str | None = None
    icon: str = ""
    description: str = ""
    parameters: Mapping[str, ToolParameter] = field(default_factory=dict)
    """The parameters by their own names."""
    fixed: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Values that the developer set, which may be secret and override the model's arguments."""
    setting: str = ""
    """Distinguishes tools of the same name in the node: a digest of the credential's id and of the values that the
    developer set; "" if there are none. Secret values are not included, because a visible digest could give them
    away."""
    check: Check | None = None
    """The check of all arguments together. Only a virtual tool has it: the agent reads its arguments, and no tool
    runs."""
    lookup: Lookup | None = None
    """Answers the calls of a virtual tool from the agent's own data; None if the call submits its arguments to the
    agent."""
    named_in: frozenset[str] = frozenset()
    """The node's parameters that list the tool: ``approval_required``, ``answer_tools``."""

    @property
    def needs_approval(self) -> bool:
        return "approval_required" in self.named_in

    @property
    def is_answer(self) -> bool:
        """Whether the result of a successful call is the answer."""
        return "answer_tools" in self.named_in

    @property
    def runs(self) -> bool:
        """Whether the host runs calls to this tool, as it does for every tool of the node."""
        return self.check is None

    @cached_property
    def own_names(self) -> Mapping[str, str]:
        """The tool's own names of parameters by the names that the model sees, if they differ."""
        if self.check is not None:
            return {name: own for own, name in safe_property_names(self.check.schema).items()}
        return {each.name: each.own_name for each in self.parameters.values() if each.name != each.own_name}

    def in_own_names(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments under the tool's own names. The given arguments may have either kind of name."""
        return {self.own_names.get(name, name): value for name, value in arguments.items()}

    def in_offered_names(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments under the names that the model sees."""
        return {self._offered_names.get(name, name): value for name, value in arguments.items()}

    @cached_property
    def _offered_names(self) -> Mapping[str, str]:
        return {own: name for name, own in self.own_names.items()}

    @cached_property
    def offered_check(self) -> Check | None:
        """A virtual tool's check, for arguments that use the names that the model sees."""
        if self.check is None or not self.own_names:
            return self.check
        return replace(check_of(with_property_names(self.check.schema, self._offered_names)), more=self.check.more)

    def files_in(self, arguments: Mapping[str, Any]) -> list[str]:
        """Return the names of files in a call's arguments."""
        given = [value for name, value in arguments.items() if self.parameters[name].takes_files]
        return [str(name) for value in given for name in (value if isinstance(value, list) else [value])]

    @cached_property
    def prompt_tool(self) -> PromptMessageTool:
        approval = ""
        if self.needs_approval:
            approval = template.APPROVAL_NOTE
        answer = ""
        if self.is_answer:
            answer = template.ANSWER_TOOL_NOTE
        return PromptMessageTool(
            name=self.name,
            description="\n\n".join(text for text in (self.description, approval, answer) if text),
            parameters=self._schema(),
        )

    def _schema(self) -> dict[str, Any]:
        if self.check is not None:
            schema = {key: value for key, value in self.check.schema.items() if key != "$schema"}
        else:
            schema = {
                "type": "object",
                "properties": {name: parameter.schema for name, parameter in self.parameters.items()},
                "required": [name for name, parameter in self.parameters.items() if parameter.required],
            }
        if self.own_names:
            schema = with_property_names(schema, self._offered_names)
        return offered_schema(schema)


@dataclass(frozen=True)
class Toolbox:
    """The tools of one run."""

    tools: Mapping[str, Tool] = field(default_factory=dict)
    files: Mapping[str, File] = field(default_factory=dict)
    """This turn's files and the files of waiting calls, by the names with which the model can pass them to a tool."""
    notes: tuple[Sentence, ...] = ()
    held_back: frozenset[str] = frozenset()
    """Names of tools that may be called, but that prompts do not offer until the model finds them."""

    def find(self, provider: str, own_name: str, setting: str) -> Tool | None:
        """Return the node's tool with this name in Dify, whatever name the model uses.

        The setting of the only tool with this name may have changed. None if several tools cannot be distinguished.
        """
        running = (tool for tool in self.tools.values() if tool.runs)
        named = [tool for tool in running if (tool.provider, tool.own_name) == (provider, own_name)]
        found = [tool for tool in named if tool.setting == setting] or named
        if len(found) == 1:
            return found[0]
        return None

    def with_tool(self, tool: Tool) -> "Toolbox":
        """Return a copy with one more tool, a virtual one, at the end."""
        return replace(self, tools={**self.tools, tool.name: tool})

    def holding_back(self, most: int) -> "Toolbox":
        """Return a copy that offers only the first tools if there are more than ``most``; 0 offers all."""
        first = None
        if 0 < most < len(self.tools):
            first = min(most, _FIRST_OFFERED)
        return replace(self, held_back=frozenset(list(self.tools)[first:] if first else ()))

    def offering(self, tools: Mapping[str, Tool]) -> "Toolbox":
        """Return a copy that also offers these tools, at the end; the toolbox itself if prompts offer all of them."""
        new = {
            name: tool
            for name, tool in tools.items()
            if name in self.held_back or not (tool.runs or name in self.tools)
        }
        others = {name: tool for name, tool in self.tools.items() if name not in new}
        if new:
            return replace(self, tools=others | new, held_back=self.held_back - new.keys())
        return self

    @property
    def takes_results(self) -> bool:
        """Whether a result can be passed on to any of the tools."""
        return any(parameter.takes_results for tool in self.tools.values() for parameter in tool.parameters.values())

    @cached_property
    def asks_first(self) -> bool:
        return any(tool.needs_approval for tool in self.tools.values())

    @cached_property
    def may_bring_answer(self) -> bool:
        return any(tool.is_answer for tool in self.tools.values())

    @cached_property
    def prompt_tools(self) -> tuple[PromptMessageTool, ...]:
        """The tools in every request of the run, which are serialized to the same bytes each time."""
        tools = in_turns(self.tools.items())  # The schemas of 600 tools take 60 ms.
        return tuple(tool.prompt_tool for name, tool in tools if name not in self.held_back)


def build_toolbox(
    raw_tools: Iterable[Mapping[str, Any]],
    *,
    allowed: Sequence[str] = (),
    naming: Mapping[str, Sequence[str]] | None = None,
    files: Mapping[str, File] | None = None,
    reserved: frozenset[str] = frozenset(),
) -> Toolbox:
    """Read the tools one by one; ``reserved`` are the names of virtual tools, which no tool of the node may have.

    ``naming`` has the entries of each parameter that lists tools. Raises ``InvalidParameters`` for an entry that
    matches no tool, because the intended tool would, for instance, run without approval.
    """
    tools: dict[str, Tool] = {}
    notes: list[Sentence] = []
    wanted = frozenset(allowed)
    entries_of = {name: frozenset(entries) for name, entries in (naming or {}).items()}
    met = set[str]()
    found = {EVERY_TOOL}
    offered: dict[str, None] = {}
    for raw in in_turns(raw_tools):
        own_name = raw["identity"]["name"]
        provider = raw["identity"].get("provider") or ""
        offered[own_name] = None
        matches = _matching_entries(own_name, provider, wanted)
        named_in = {each: _matching_entries(own_name, provider, entries) for each, entries in entries_of.items()}
        met |= matches
        found = found.union(*named_in.values())
        if wanted and not matches:
            notes.append(OurWords(f"tool {own_name!r} is left out: not among the allowed tools"))
            continue
        name = _free_name(own_name, provider, reserved | tools.keys())
        try:
            tool = _read_tool(raw, name, tuple(files or ()), notes.append)
        except _Unusable as reason:
            notes.append(OurWords(f"tool {own_name!r} is left out: {reason}"))
        else:
            every = (each for each in named_in if named_in[each] or EVERY_TOOL in entries_of[each])
            tools[name] = replace(tool, named_in=frozenset(every))
    _refuse_unmet({name: entries - found for name, entries in entries_of.items()}, list(offered))
    notes += _notes_on_allowed([entry for entry in dict.fromkeys(allowed) if entry not in met])
    return Toolbox(tools, files or {}, tuple(notes))


def _refuse_unmet(unmet: Mapping[str, frozenset[str]], offered: Sequence[str]) -> None:
    """Raise ``InvalidParameters`` for the first entry of a parameter that matches no tool of the node."""
    for parameter, entries in unmet.items():
        for entry in sorted(entries):
            raise InvalidParameters(f"parameter '{parameter}': the node has no tool {entry!r}; {_hint(entry, offered)}")


def _hint(entry: str, offered: Sequence[str]) -> str:
    if looks_like_selector(entry):
        return missing_variable(entry)
    return (
        f"its tools are: {listed(offered) or 'none'}; write names or provider/name, separated by commas, or * for all"
    )


def _notes_on_allowed(unmet: Sequence[str]) -> Iterator[Sentence]:
    """Yield a note for each of the first names in ``allowed_tools`` that match no tool."""
    for entry in unmet[:MAX_NAMED]:
        hint = ""
        if looks_like_selector(entry):
            hint = f"; {missing_variable(entry)}"
        yield Quoting(f"allowed_tools: no tool has the name {entry!r}{hint}")
    if len(unmet) > MAX_NAMED:
        yield OurWords(f"allowed_tools: {len(unmet) - MAX_NAMED:,} more names match no tool")


def _read_tool(raw: Mapping[str, Any], name: str, file_names: Sequence[str], note: Note) -> Tool:
    own_name = raw["identity"]["name"]
    icon = raw["identity"].get("icon")
    fixed = {key: value for key, value in (raw.get("runtime_parameters") or {}).items() if value is not None}
    # All parameters are included, because one that is left out now may be offered later.
    names = safe_names([each["name"] for each in raw["parameters"] or ()])
    parameters: dict[str, ToolParameter] = {}
    for declared in raw["parameters"] or ():
        label = declared["name"]
        if declared["form"] != "llm" or label in fixed:
            continue  # set by the developer; the model neither sees nor sets them
        notes: list[Sentence] = []
        try:
            parameters[label] = _read_parameter(declared, names.get(label, label), file_names, notes.append)
        except _Unusable as reason:
            if declared.get("required"):
                raise _Unusable(f"its required parameter {label!r} cannot be offered: {reason}") from None
            note(OurWords(f"tool {own_name!r}: parameter {label!r} is left out: {reason}"))
        for each in dict.fromkeys(notes):
            note(each.of(f"tool {own_name!r}: parameter {label!r}"))
    known_types = {member.value for member in ToolProviderType}
    provider_type = raw.get("provider_type")
    return Tool(
        name=name,
        own_name=own_name,
        provider=raw["identity"].get("provider") or "",
        provider_type=ToolProviderType(provider_type if provider_type in known_types else "builtin"),
        credential_id=raw.get("credential_id") or None,
        icon=icon if isinstance(icon, str) else "",  # Emoji icons in Dify are objects.
        description=_read_description(raw),
        parameters=parameters,
        fixed=fixed,
        setting=_setting(raw),
    )


def _setting(raw: Mapping[str, Any]) -> str:
    values = {name: value for name, value in public_values(raw).items() if value is not None}
    written = json.dumps([raw.get("credential_id") or "", values], sort_keys=True, default=str)
    if raw.get("credential_id") or values:
        return hashlib.sha256(written.encode()).hexdigest()[:16]
    return ""


def _read_description(raw: Mapping[str, Any]) -> str:
    """Return the developer's description for the model, or else the description for people, the label or the name.

    The result is never blank (docs/model-facts.md, "Names and schemas that APIs refuse").
    """
    description = raw.get("description") or {}
    shown = description.get("human") or {}
    label = raw["identity"].get("label") or {}
    texts = (description.get("llm"), shown.get("en_US"), label.get("en_US"), raw["identity"]["name"])
    return next((str(text) for text in texts if text and str(text).strip()), "tool")

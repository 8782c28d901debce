"""Names of tools and files: matched with an allow-list, and unique and valid for every model API."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from itertools import chain, count
from typing import Any, NamedTuple

from dify_plugin.entities.model.message import PromptMessageTool
from dify_plugin.entities.tool import ToolProviderType
from dify_plugin.file.file import File

from internal.clock import in_turns
from internal.errors import InvalidParameters, Note, OurWords, Quoting, Sentence
from internal.node.params import SECRET_TYPE, public_values
from internal.node.schema import Check, SchemaUnusable, check_of, embedded, repaired
from internal.text.texts import looks_like_selector, missing_variable
from prompt import template

# Names of tools and files: matched with an allow-list, and unique and valid for every model API.

_NAME_LENGTH = 64
_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_-]")


class ToolIdentity(NamedTuple):
    name: str
    provider: str
    icon: str = ""
    """An address or a file name. Dify's emoji icons, which are objects, are left out."""


def identify(raw: Mapping[str, Any]) -> ToolIdentity:
    identity = raw["identity"]
    icon = identity.get("icon")
    return ToolIdentity(identity["name"], identity.get("provider") or "", icon if isinstance(icon, str) else "")


def matching_entries(identity: ToolIdentity, allowed: frozenset[str]) -> frozenset[str]:
    """The allow-list entries that mean this tool: its name, or ``provider/name`` with the whole provider or its end."""
    parts = [*identity.provider.split("/"), identity.name]
    meanings = {"/".join(parts[start:]) for start in range(len(parts))}
    return allowed & meanings


def name_in_history(name: str) -> str:
    """The name of a call as model APIs accept it; a model may invent a tool of any name."""
    return _NOT_IN_A_NAME.sub("_", name)[:_NAME_LENGTH] or "unnamed"


def free_name(identity: ToolIdentity, taken: Iterable[str]) -> str:
    """A unique name that model APIs accept; tools of the same name get their provider's name in front."""
    plain = _NOT_IN_A_NAME.sub("_", identity.name)[:_NAME_LENGTH]
    plain = plain if re.search(r"[a-zA-Z0-9]", plain) else "tool"
    qualified = _NOT_IN_A_NAME.sub("_", f"{identity.provider.rsplit('/', 1)[-1]}_{plain}")[:_NAME_LENGTH]
    unavailable = frozenset(taken)
    return next(name for name in _candidates(plain, qualified) if name not in unavailable)


def _candidates(plain: str, qualified: str) -> Iterator[str]:
    yield plain
    yield qualified
    number = 2
    while True:
        ending = f"_{number}"
        yield plain[: _NAME_LENGTH - len(ending)] + ending
        number += 1


def name_files(files: Iterable[File]) -> dict[str, File]:
    """A distinct, readable name for each of this turn's files."""
    named: dict[str, File] = {}
    for position, file in enumerate(files, start=1):
        name = file.filename or f"{file.type.value}-{position}{file.extension or ''}"
        free = next(each for each in chain([name], (f"{number}-{name}" for number in count(2))) if each not in named)
        named[free] = file
    return named


# One tool parameter as the model sees it and as its arguments are checked.

_STRINGS = frozenset({"string", SECRET_TYPE, "text-input", "select", "dynamic-select", "date"})
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


class ParameterUnusable(Exception):  # noqa: N818 - says what is the matter
    """This parameter cannot be offered to a model; the reason quotes nothing."""


@dataclass(frozen=True)
class ToolParameter:
    """A parameter that the model fills in."""

    name: str
    schema: Mapping[str, Any]
    """JSON Schema, as sent to the model."""
    required: bool = False
    default: object = None
    takes_files: bool = False
    """Its values are names of this turn's files."""
    is_number: bool = False
    """Dify reads its values from text too, exactly."""
    is_secret: bool = False
    """What the model gives it stays out of log, text and variables."""
    own_check: Check | None = None
    """Of an MCP tool's own schema, which says more than types."""
    notes: tuple[Sentence, ...] = ()

    @cached_property
    def check(self) -> Check:
        return self.own_check or check_of(self.schema)


def read_parameter(raw: Mapping[str, Any], *, file_names: Sequence[str] = ()) -> ToolParameter:
    """Read a parameter of form ``llm``.

    Raises:
        ParameterUnusable: with the reason, for the log.
    """
    name, kind = raw["name"], raw["type"]
    default = raw.get("default")
    default = None if default == "" else default
    notes: list[Sentence] = []
    check = None
    if kind in _FILES:
        if not file_names:
            raise ParameterUnusable("it takes a file, and this turn has none")
        schema = _file_schema(kind, file_names)
    elif kind not in _PLAIN_TYPES:
        raise ParameterUnusable(f"a model cannot fill in the type {kind!r}")
    else:
        schema = _plain_schema(kind, raw)
        if own := raw.get("input_schema"):
            try:
                usable = repaired(own, notes.append)
                schema, check = embedded(usable, name), check_of(usable)
            except SchemaUnusable as broken:
                notes.append(Quoting(f"its own schema is not used: {broken}"))
    description = raw.get("llm_description")
    if description and not schema.get("description"):
        schema = {**schema, "description": description}
    return ToolParameter(
        name=name,
        schema=schema,
        # With a default there is nothing to ask the model for.
        required=bool(raw.get("required")) and default is None,
        default=default if raw.get("required") else None,
        takes_files=kind in _FILES,
        is_number=kind == "number",
        is_secret=kind == SECRET_TYPE,
        own_check=check,
        notes=tuple(dict.fromkeys(notes)),
    )


def _plain_schema(kind: str, raw: Mapping[str, Any]) -> dict[str, Any]:
    schema = dict(_PLAIN_TYPES[kind])
    if kind == "select" and raw.get("options"):
        schema["enum"] = [option["value"] for option in in_turns(raw["options"])]
        if raw.get("multiple"):
            schema = {"type": "array", "items": schema}
    if kind == "number":
        bounds = {"minimum": raw.get("min"), "maximum": raw.get("max")}
        schema |= {word: bound for word, bound in bounds.items() if bound is not None}
    return schema


def _file_schema(kind: str, file_names: Sequence[str]) -> dict[str, Any]:
    one = {"type": "string", "enum": list(file_names)}
    return one if kind == "file" else {"type": "array", "items": one}


# The node's tools as the model sees them, and the way back from a name to a call.
#
# A bad parameter is left out; when it is required, its tool is left out. Other tools are not affected.

EVERY_TOOL = "*"
"""An entry that means all tools."""
_SETTING_LENGTH = 16
"""Hexadecimal digits."""
_MAX_NAMED = 20
"""Entries of an allow-list that are named in the log if they match no tool; one line each."""


class ToolUnusable(Exception):  # noqa: N818 - says what is the matter
    """This tool cannot be offered to a model; the reason quotes nothing."""


class ToolKind(Enum):
    """What becomes of a valid call."""

    RUNS = "runs"
    """The host runs a tool of the node's."""
    HANDS_OVER = "hands over"
    """The agent takes its arguments: an answer, a plan, a judgement."""
    READS = "reads"
    """The agent answers it from what it keeps of the conversation."""


@dataclass(frozen=True)
class VirtualSchema:
    """A schema that all arguments of a call have to satisfy together."""

    schema: Mapping[str, Any]
    """JSON Schema of an object, as sent to the model."""
    check: Check


@dataclass(frozen=True)
class Tool:
    """One tool: what the model is told of it and what a call of it needs."""

    name: str
    """Unique in the toolbox, ``^[a-zA-Z0-9_-]{1,64}$``."""
    own_name: str
    """What Dify calls it."""
    provider: str
    provider_type: ToolProviderType = ToolProviderType.BUILT_IN
    credential_id: str | None = None
    icon: str = ""
    """An address or the name of a file; "" without one."""
    description: str = ""
    parameters: Mapping[str, ToolParameter] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Values that the developer set, some of them secret; they win over any argument."""
    setting: str = ""
    """Tells a tool from another of the same name in the node: a digest of the credential's id and of the values that
    the developer set, without the secret ones, which a visible digest could give away; "" without any."""
    virtual_schema: VirtualSchema | None = None
    """Set for a virtual tool: the agent reads its arguments, and no tool runs."""
    kind: ToolKind = ToolKind.RUNS
    needs_approval: bool = False
    """Whether the user is asked before a call of it runs."""

    def files_in(self, arguments: Mapping[str, Any]) -> list[str]:
        """The names of files in a call's arguments."""
        given = [value for name, value in arguments.items() if self.parameters[name].takes_files]
        return [str(name) for value in given for name in (value if isinstance(value, list) else [value])]

    @cached_property
    def prompt_tool(self) -> PromptMessageTool:
        parameters = {
            "type": "object",
            "properties": {name: dict(parameter.schema) for name, parameter in self.parameters.items()},
            "required": [name for name, parameter in self.parameters.items() if parameter.required],
        }
        note = template.APPROVAL_NOTE if self.needs_approval else ""
        return PromptMessageTool(
            name=self.name,
            description="\n\n".join(text for text in (self.description, note) if text),
            parameters=dict(self.virtual_schema.schema) if self.virtual_schema else parameters,
        )


@dataclass(frozen=True)
class Toolbox:
    """The tools of one run."""

    tools: Mapping[str, Tool] = field(default_factory=dict)
    files: Mapping[str, File] = field(default_factory=dict)
    """This turn's files, and those of calls that wait, by the names under which the model may pass them to a tool."""
    notes: tuple[Sentence, ...] = ()

    def find(self, provider: str, own_name: str, setting: str) -> Tool | None:
        """The node's tool that Dify calls by this name, whatever the model calls it.

        Its setting may have changed, if it is the only one; None if there are several that cannot be told apart.
        """
        named = [
            tool
            for tool in self.tools.values()
            if tool.kind is ToolKind.RUNS and (tool.provider, tool.own_name) == (provider, own_name)
        ]
        found = [tool for tool in named if tool.setting == setting] or named
        return found[0] if len(found) == 1 else None

    def with_tool(self, tool: Tool) -> "Toolbox":
        """The same tools and a virtual one at the end."""
        return replace(self, tools={**self.tools, tool.name: tool})

    @cached_property
    def asks_first(self) -> bool:
        """Whether a call of any tool needs the user's approval."""
        return any(tool.needs_approval for tool in self.tools.values())

    @cached_property
    def prompt_tools(self) -> tuple[PromptMessageTool, ...]:
        """What goes into every request of the run, byte for byte the same."""
        return tuple(tool.prompt_tool for tool in self.tools.values())


def build_toolbox(
    raw_tools: Iterable[Mapping[str, Any]],
    *,
    allowed: Sequence[str] = (),
    needing_approval: Sequence[str] = (),
    files: Mapping[str, File] | None = None,
    reserved: frozenset[str] = frozenset(),
) -> Toolbox:
    """Read the tools one by one; ``reserved`` are the names of virtual tools, which none of these may take.

    Raises:
        InvalidParameters: an entry of ``needing_approval`` matches no tool. A tool would else run without approval
            because of a slip of the pen.
    """
    tools: dict[str, Tool] = {}
    notes: list[Sentence] = []
    met: set[str] = set()
    guarded: set[str] = set()
    offered: list[str] = []
    wanted, asking_first = frozenset(allowed), frozenset(needing_approval)
    for raw in in_turns(raw_tools):
        identity = identify(raw)
        matches = matching_entries(identity, wanted)
        met |= matches
        offered.append(identity.name)
        approvals = matching_entries(identity, asking_first)
        guarded |= approvals
        if wanted and not matches:
            notes.append(OurWords(f"tool {identity.name!r} is left out: not among the allowed tools"))
            continue
        name = free_name(identity, reserved | tools.keys())
        try:
            tool = _read_tool(raw, identity, name, tuple(files or ()), notes.append)
            tools[name] = replace(tool, needs_approval=bool(approvals) or EVERY_TOOL in asking_first)
        except ToolUnusable as reason:
            notes.append(OurWords(f"tool {identity.name!r} is left out: {reason}"))
    _require_matches([entry for entry in asking_first - guarded if entry != EVERY_TOOL], list(dict.fromkeys(offered)))
    notes += _unmet_notes([entry for entry in dict.fromkeys(allowed) if entry not in met])
    return Toolbox(tools, files or {}, tuple(notes))


def _require_matches(unmet: Sequence[str], names: Sequence[str]) -> None:
    for entry in sorted(unmet):
        known = f"{', '.join(names[:_MAX_NAMED])}{', …' if len(names) > _MAX_NAMED else ''}" or "none"
        advice = f"its tools are: {known}; write names or provider/name, separated by commas, or * for all"
        reason = missing_variable(entry) if looks_like_selector(entry) else advice
        raise InvalidParameters(f"parameter 'approval_required': the node has no tool {entry!r}; {reason}")


def _unmet_notes(unmet: Sequence[str]) -> Iterator[Sentence]:
    for entry in unmet[:_MAX_NAMED]:
        note = f"allowed_tools: no tool is called {entry!r}"
        yield Quoting(f"{note}; {missing_variable(entry)}" if looks_like_selector(entry) else note)
    if len(unmet) > _MAX_NAMED:
        yield OurWords(f"allowed_tools: {len(unmet) - _MAX_NAMED:,} more names match no tool")


def _read_tool(
    raw: Mapping[str, Any], identity: ToolIdentity, name: str, file_names: Sequence[str], note: Note
) -> Tool:
    runtime = raw.get("runtime_parameters") or {}
    fixed = {key: value for key, value in runtime.items() if value is not None}  # null: the model fills it in
    parameters: dict[str, ToolParameter] = {}
    for declared in raw["parameters"] or ():
        label = declared["name"]
        if declared["form"] != "llm" or label in fixed:
            continue  # the developer's, which the model neither sees nor sets
        try:
            parameter = read_parameter(declared, file_names=file_names)
        except ParameterUnusable as reason:
            if declared.get("required"):
                raise ToolUnusable(f"its required parameter {label!r} cannot be offered: {reason}") from None
            note(OurWords(f"tool {identity.name!r}: parameter {label!r} is left out: {reason}"))
            continue
        for each in parameter.notes:
            note(each.of(f"tool {identity.name!r}: parameter {label!r}"))
        parameters[parameter.name] = parameter
    return Tool(
        name=name,
        own_name=identity.name,
        provider=identity.provider,
        provider_type=_read_provider_type(raw.get("provider_type")),
        credential_id=raw.get("credential_id") or None,
        icon=identity.icon,
        description=_read_description(raw),
        parameters=parameters,
        fixed=fixed,
        setting=_setting(raw),
    )


def _setting(raw: Mapping[str, Any]) -> str:
    values = {name: value for name, value in public_values(raw).items() if value is not None}
    if not (raw.get("credential_id") or values):
        return ""
    written = json.dumps([raw.get("credential_id") or "", values], sort_keys=True, default=str)
    return hashlib.sha256(written.encode()).hexdigest()[:_SETTING_LENGTH]


def _read_provider_type(value: object) -> ToolProviderType:
    try:
        return ToolProviderType(value)
    except ValueError:
        return ToolProviderType.BUILT_IN


def _read_description(raw: Mapping[str, Any]) -> str:
    """What the developer wrote for the model, else what is shown to people; "" when there is nothing."""
    description = raw.get("description") or {}
    shown = description.get("human") or {}
    return str(description.get("llm") or shown.get("en_US") or "")

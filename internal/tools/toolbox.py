"""The node's tools as the model sees them, and the way back from a name to a call.

In: Dify's tool dicts (docs/host-facts.md, "The tools parameter"), the allow-list, this turn's files. Out: a Toolbox:
tools under names that every model API takes, in the node's order; what had to be left out is in its notes. A bad
parameter is left out; when it is required, its tool is left out. Other tools are not affected.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any

from dify_plugin.entities.model.message import PromptMessageTool
from dify_plugin.entities.tool import ToolProviderType
from dify_plugin.file.file import File

from internal.errors import InvalidParameters
from internal.node.secrets import public_values
from internal.schema.check import Check
from internal.text.fairness import in_turns
from internal.text.notes import Note, OurWords, Quoting, Sentence
from internal.text.pasted import looks_like_selector, missing_variable
from internal.tools.names import ToolIdentity, free_name, identify, matching_entries
from internal.tools.parameters import ParameterUnusable, ToolParameter, read_parameter
from prompt import template

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

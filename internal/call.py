"""A tool call in its shapes: as the model wrote it, as it was judged, and as it ended."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, NamedTuple

from dify_plugin.entities.model.message import AssistantPromptMessage
from dify_plugin.file.file import File

from internal.node.tools import Tool, name_in_history
from internal.node.virtual_tools import LOOKUPS
from internal.sources import Source
from internal.text.secrets import texts_in
from internal.tooling import ToolArgumentsParseResult, parse_tool_arguments


class CallStatus(StrEnum):
    """How a tool call ended, in the words of the ``tool_runs`` variable."""

    OK = "ok"
    ERROR = "error"
    REFUSED = "refused"
    WAITING = "waiting"


@dataclass(frozen=True)
class ToolCall:
    """A call as the model wrote it."""

    id: str
    """The provider's, verbatim, or one of ours where it gave none. Need not be unique: some providers repeat it."""
    name: str
    arguments: str
    """Without NUL, which Dify does not store."""
    had_nul: bool = False

    @cached_property
    def parsed(self) -> ToolArgumentsParseResult:
        return parse_tool_arguments(self.arguments)

    @property
    def is_lookup(self) -> bool:
        """Whether it asks for what the agent keeps; no tool of the node has such a name."""
        return self.name in LOOKUPS

    @property
    def arguments_written_back(self) -> str:
        """The arguments as later prompts show them: those that are not a JSON object become ``{}``."""
        return self.arguments if self.parsed.ok and self.arguments else "{}"

    def written_back(self) -> AssistantPromptMessage.ToolCall:
        """The call as later prompts show it."""
        name, arguments = name_in_history(self.name), self.arguments_written_back
        function = AssistantPromptMessage.ToolCall.ToolCallFunction(name=name, arguments=arguments)
        return AssistantPromptMessage.ToolCall(id=self.id, type="function", function=function)


def canonical_json(value: object) -> str:
    """The same text for equal JSON values, in whatever order their keys are; 1 and 1.0 differ."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True)
class Reference:
    """What an argument has in place of one or more results that it refers to."""

    written: Any
    """The argument as the model wrote it, which the log, the variables and later prompts have: it is short."""
    shown: Any
    """With head and tail of each result, for the question whether the call may run."""
    results: tuple[tuple[str, str, int], ...]
    """Each reference, the tool whose result it is, and its length in characters."""


type Signature = tuple[str, str]
"""What makes two calls the same for the repeat guard: the tool's name and the checked arguments as canonical JSON."""


@dataclass(frozen=True)
class ValidCall:
    """A call that may run."""

    call: ToolCall
    tool: Tool
    arguments: Mapping[str, Any]
    """Checked, and converted to the types that the tool asks for."""
    references: Mapping[str, Reference] = field(default_factory=dict)
    """Of the arguments in which results took the place of references to them."""

    @property
    def as_written(self) -> dict[str, Any]:
        """The arguments with the references in place of results."""
        return {**self.arguments, **{name: each.written for name, each in self.references.items()}}

    @property
    def referred_secrets(self) -> Iterator[str]:
        """The results that the model gives to secret parameters by reference."""
        parameters = self.tool.parameters
        return texts_in(
            [self.arguments.get(name) for name in self.references if name in parameters and parameters[name].is_secret]
        )

    @cached_property
    def signature(self) -> Signature:
        return self.tool.name, canonical_json(self.as_written)


@dataclass(frozen=True)
class RejectedCall:
    """A call that does not run; the model reads ``text`` as its result."""

    call: ToolCall
    text: str
    tool: Tool | None = None
    """None when no tool has this name, or when the call was not looked at."""
    ends_tool_phase: bool = False
    """The model was told of the repetition already: the answer is due."""
    by_user: bool = False
    """The user did not approve it, which is not an error."""


@dataclass(frozen=True)
class WaitingCall:
    """A call that may run once the user has approved it."""

    valid: ValidCall
    id: str
    """The one under which the user answers it."""
    files: Mapping[str, File] = field(default_factory=dict)
    """Those that its arguments name."""
    subtask: str | None = None
    is_asked: bool = True
    """False for a call that would bring the answer, and waits only because others of its turn do."""

    @property
    def call(self) -> ToolCall:
        return self.valid.call

    @property
    def tool(self) -> Tool:
        return self.valid.tool

    def as_variable(self) -> dict[str, Any]:
        """One item of the variable ``pending_calls``."""
        item = {"id": self.id, "tool": self.tool.name, "arguments": dict(self.valid.arguments)}
        return item if self.subtask is None else {**item, "subtask": self.subtask}


type JudgedCall = ValidCall | RejectedCall | WaitingCall


@dataclass(frozen=True)
class EndedCall:
    """A call with its result, for the log, the variables and the repeat guard."""

    judged: JudgedCall
    status: CallStatus
    tool_response: str
    """Redacted, and cut to the limit."""
    error: str | None = None
    """For the log: why it failed; None for a call that succeeded, and for one that the user did not approve."""
    elapsed_seconds: float = 0.0
    transient: bool = False
    """Whether the failure may not come again."""
    sources: tuple[Source, ...] = ()
    pictures: tuple[str, ...] = ()
    """A digest of each that the model sees: with other pictures it is another result."""
    sent_json: tuple[str, ...] = ()
    """What the tool sent as JSON, each value as its text, without secrets of the node."""
    has_more_json: bool = False
    """Whether it sent more than is kept."""

    @property
    def call(self) -> ToolCall:
        return self.judged.call

    @property
    def brings_answer(self) -> bool:
        return self.status is CallStatus.OK and self.judged.tool is not None and self.judged.tool.is_answer


class Brought(NamedTuple):
    """What a call of one of the node's answer tools brought: the answer, or a part of it."""

    tool: str
    result: str
    """As the model reads it in other conversations."""
    text: str
    """As the user reads it: whole, and without what the model reads about files that the user has got."""
    values: tuple[Any, ...]
    """What it sent as JSON."""


class Result(NamedTuple):
    """What the model reads as the result of a call."""

    call: ToolCall
    shown: str
    """With the numbers of its sources, within the limit; the note of a cut says how to read on, in this run only."""
    lasting: str
    """The same for later runs and other conversations."""

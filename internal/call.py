"""A tool call in its shapes: as the model wrote it, as it was judged, and how it ended."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from hashlib import sha256
from sys import getsizeof
from typing import Any

from dify_plugin.entities.model.message import AssistantPromptMessage
from dify_plugin.file.file import File

from internal.node.model import Medium
from internal.node.tools import Tool, name_in_history
from internal.node.virtual_tools import LOOKUPS
from internal.sources import Source
from internal.text.secrets import texts_in
from internal.tooling import ToolArgumentsParseResult, parse_tool_arguments
from prompt import template


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
        if self.parsed.ok and self.arguments:
            return self.arguments
        return "{}"

    def written_back(self) -> AssistantPromptMessage.ToolCall:
        """The call as later prompts show it."""
        name = name_in_history(self.name)
        arguments = self.arguments_written_back
        function = AssistantPromptMessage.ToolCall.ToolCallFunction(name=name, arguments=arguments)
        return AssistantPromptMessage.ToolCall(id=self.id, type="function", function=function)


MAX_CALLS = 256
"""Calls of one turn; the others are left out (docs/limits.md)."""
MAX_CALL_NAME = 200
"""Characters of the name that a model gives to a call; a tool's name has at most 64."""
MAX_CALL_ID = 64 * 1024
"""Characters of a call's id: some providers put a signature into it. A longer id is replaced."""
_ID_LENGTH = 9
"""Letters and digits of an id of ours: no provider asks for fewer or more, nor refuses one of them."""


def portable_id(written: str, occurrence: int = 0) -> str:
    """An id that every provider accepts. It depends only on the text and the occurrence."""
    return sha256(f"{occurrence}.{written}".encode(errors="replace")).hexdigest()[:_ID_LENGTH]


def canonical_json(value: object) -> str:
    """A JSON text that is equal for equal values, whatever the order of their keys. 1 and 1.0 differ."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True)
class Reference:
    """An argument that refers to one or more earlier results."""

    written: Any
    """The argument as the model wrote it, which the log, the variables and later prompts have: it is short."""
    shown: Any
    """The argument with the beginning and the end of each result, for the question for approval."""
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
    """The references of the arguments in which results replaced them."""

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
    """The tool; None if no tool has this name, or if the call was not examined."""
    ends_tool_phase: bool = False
    """The model was told of the repetition already: the answer is due."""
    by_user: bool = False
    """The user did not approve it, which is not an error."""


@dataclass(frozen=True)
class WaitingCall:
    """A call that may run once the user has approved it."""

    valid: ValidCall
    id: str
    """The id with which the user answers it."""
    files: Mapping[str, File] = field(default_factory=dict)
    """The files that its arguments name."""
    subtask: str | None = None
    is_asked: bool = True
    """False for a call of an answer tool that waits only because others of its turn do."""

    @property
    def call(self) -> ToolCall:
        return self.valid.call

    @property
    def tool(self) -> Tool:
        return self.valid.tool

    def as_variable(self) -> dict[str, Any]:
        """One item of the variable ``pending_calls``."""
        item = {"id": self.id, "tool": self.tool.name, "arguments": dict(self.valid.arguments)}
        if self.subtask is None:
            return item
        return {**item, "subtask": self.subtask}


type JudgedCall = ValidCall | RejectedCall | WaitingCall


MAX_PICTURES = 4
"""Pictures that one round shows (docs/files.md)."""


@dataclass(frozen=True)
class Picture:
    """A picture that a tool made, as the model sees it, or the reason why the model does not see it."""

    name: str
    part: Medium | None
    why: str = ""

    def left_out(self) -> "Picture":
        """The same picture without its bytes, because others came first."""
        if self.part is None:
            return self
        return Picture(self.name, None, template.PICTURE_BEYOND.format(most=MAX_PICTURES))

    @property
    def digest(self) -> str:
        """Equal for equal bytes; "" without bytes."""
        if self.part is None:
            return ""
        return sha256(self.part.base64_data.encode()).hexdigest()


@dataclass(frozen=True)
class ToolOutcome:
    """How a tool call ended, with a text for each reader: the model, the user, the log, later calls, later runs."""

    judged: JudgedCall
    status: CallStatus
    tool_response: str
    """What the log and the variables show. Redacted, and cut to the node's limit."""
    error: str | None = None
    """For the log: why the call failed. None for a call that succeeded, and for one that the user did not approve."""
    elapsed_seconds: float = 0.0
    transient: bool = False
    """Whether the failure may not happen again."""
    sources: tuple[Source, ...] = ()
    pictures: tuple[Picture, ...] = ()
    sent_json: tuple[str, ...] = ()
    """The JSON values that the tool sent, each as its text, without the node's secrets."""
    has_more_json: bool = False
    """Whether the tool sent more JSON than is kept."""
    whole: str = ""
    """The whole result, which a later call may read or refer to. Redacted."""
    user_text: str = ""
    """The result of an answer tool as the user reads it: whole, and without the lines about forwarded files."""
    prompt_text: str = ""
    """What the prompts of this run show, within the limit: source numbers, and how to read on where it was cut."""
    record_text: str = ""
    """The text for later runs and other conversations, which cannot read more of the result."""

    @property
    def call(self) -> ToolCall:
        return self.judged.call

    @property
    def brings_answer(self) -> bool:
        """Whether the result is the user's answer, or a part of it (``answer_tools``)."""
        return self.status is CallStatus.OK and self.judged.tool is not None and self.judged.tool.is_answer

    @property
    def json_values(self) -> tuple[Any, ...]:
        """The JSON values that the tool sent."""
        return tuple(json.loads(text) for text in self.sent_json)

    @property
    def picture_digests(self) -> tuple[str, ...]:
        """Digests of the pictures that the model sees. With other pictures it is a different result."""
        return tuple(picture.digest for picture in self.pictures if picture.part)

    @property
    def lasting_size(self) -> int:
        """Approximate bytes of memory that it takes until the run ends: its text in two forms, and its sources."""
        texts = (text for source in self.sources for text in (source.content, *map(str, source.resource.values())))
        return 2 * getsizeof(self.tool_response) + sum(map(len, texts))

    @property
    def condensed(self) -> "ToolOutcome":
        """The outcome as it is kept to the end of the run: without the bulk that only its own round needs."""
        return replace(self, whole="", pictures=(), user_text="")

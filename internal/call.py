"""The stages of a tool call: the call as the model wrote it, the call after validation, and its outcome."""

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
    """How a tool call ended. The values appear in the ``tool_runs`` variable."""

    OK = "ok"
    ERROR = "error"
    REFUSED = "refused"
    WAITING = "waiting"


@dataclass(frozen=True)
class ToolCall:
    """A call as the model wrote it."""

    id: str
    """The provider's unchanged id, or a generated id if the provider gave none. Some providers repeat ids."""
    name: str
    arguments: str
    """The arguments as JSON text, without NUL characters, which Dify cannot store."""
    had_nul: bool = False

    @cached_property
    def parsed(self) -> ToolArgumentsParseResult:
        return parse_tool_arguments(self.arguments)

    @property
    def is_lookup(self) -> bool:
        """Whether the call reads the agent's own data. No tool of the node has such a name."""
        return self.name in LOOKUPS

    @property
    def arguments_written_back(self) -> str:
        """The arguments as later prompts show them. Arguments that are not a JSON object become ``{}``."""
        if self.parsed.ok and self.arguments:
            return self.arguments
        return "{}"

    def written_back(self) -> AssistantPromptMessage.ToolCall:
        """Return the call as later prompts show it."""
        name = name_in_history(self.name)
        arguments = self.arguments_written_back
        function = AssistantPromptMessage.ToolCall.ToolCallFunction(name=name, arguments=arguments)
        return AssistantPromptMessage.ToolCall(id=self.id, type="function", function=function)


MAX_CALLS = 256
"""Maximum number of calls in one turn. Further calls are dropped (docs/limits.md)."""
MAX_CALL_NAME = 200
"""Maximum characters of the tool name in a call. The name of a tool has at most 64."""
MAX_CALL_ID = 64 * 1024
"""Maximum characters of a call's id. Some providers put a signature into it. A longer id is replaced."""
_ID_LENGTH = 9
"""Length of a generated id in letters and digits, which every provider accepts."""


def portable_id(written: str, occurrence: int = 0) -> str:
    """Return an id that every provider accepts and that depends only on the text and the occurrence."""
    return sha256(f"{occurrence}.{written}".encode(errors="replace")).hexdigest()[:_ID_LENGTH]


def canonical_json(value: object) -> str:
    """Return a JSON text that is the same for equal values, regardless of the order of keys. 1 and 1.0 differ."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True)
class Reference:
    """An argument that refers to one or more earlier results."""

    written: Any
    """The argument as the model wrote it. The log, the variables and later prompts show this short form."""
    shown: Any
    """The argument with the beginning and the end of each result, for the question for approval."""
    results: tuple[tuple[str, str, int], ...]
    """Each reference, the name of the tool that produced the result, and the length of the result in characters."""


type Signature = tuple[str, str]
"""The tool's name and the validated arguments as canonical JSON. The repeat guard compares calls by their signature."""


@dataclass(frozen=True)
class ValidCall:
    """A call that may run."""

    call: ToolCall
    tool: Tool
    arguments: Mapping[str, Any]
    """The validated arguments, converted to the types that the tool requires."""
    references: Mapping[str, Reference] = field(default_factory=dict)
    """The references by the name of the argument in which a result replaced them."""

    @property
    def as_written(self) -> dict[str, Any]:
        """The arguments with references instead of results."""
        return {**self.arguments, **{name: each.written for name, each in self.references.items()}}

    @property
    def referred_secrets(self) -> Iterator[str]:
        """The results that the model passes to secret parameters by reference."""
        parameters = self.tool.parameters
        return texts_in(
            [self.arguments.get(name) for name in self.references if name in parameters and parameters[name].is_secret]
        )

    @cached_property
    def signature(self) -> Signature:
        return self.tool.name, canonical_json(self.as_written)


@dataclass(frozen=True)
class RejectedCall:
    """A call that does not run. The model reads ``text`` as its result."""

    call: ToolCall
    text: str
    tool: Tool | None = None
    """The tool; None if no tool has this name, or if the call was not examined."""
    ends_tool_phase: bool = False
    """Whether the model must now answer, because it repeated a call after it was warned."""
    by_user: bool = False
    """Whether the user did not approve the call, which is not an error."""


@dataclass(frozen=True)
class WaitingCall:
    """A call that may run once the user has approved it."""

    valid: ValidCall
    id: str
    """The id that the user's answer refers to."""
    files: Mapping[str, File] = field(default_factory=dict)
    """The files that the arguments name."""
    subtask: str | None = None
    is_asked: bool = True
    """False for a call of an answer tool that waits only because other calls of its turn wait."""

    @property
    def call(self) -> ToolCall:
        return self.valid.call

    @property
    def tool(self) -> Tool:
        return self.valid.tool

    def as_variable(self) -> dict[str, Any]:
        """Return one item of the variable ``pending_calls``."""
        item = {"id": self.id, "tool": self.tool.name, "arguments": dict(self.valid.arguments)}
        if self.subtask is None:
            return item
        return {**item, "subtask": self.subtask}


type JudgedCall = ValidCall | RejectedCall | WaitingCall


MAX_PICTURES = 4
"""Maximum number of pictures that one round shows to the model (docs/files.md)."""


@dataclass(frozen=True)
class Picture:
    """A picture that a tool created, as the model sees it, or the reason why the model does not see it."""

    name: str
    part: Medium | None
    why: str = ""

    def left_out(self) -> "Picture":
        """Return a copy without the bytes, for a picture beyond ``MAX_PICTURES``."""
        if self.part is None:
            return self
        return Picture(self.name, None, template.PICTURE_BEYOND.format(most=MAX_PICTURES))

    @property
    def digest(self) -> str:
        """A digest of the bytes; "" for a picture without bytes."""
        if self.part is None:
            return ""
        return sha256(self.part.base64_data.encode()).hexdigest()


@dataclass(frozen=True)
class ToolOutcome:
    """The outcome of a tool call, with a separate text for the model, the user, the log, later calls and later runs."""

    judged: JudgedCall
    status: CallStatus
    tool_response: str
    """The text for the log and the variables, redacted and cut to the node's limit."""
    error: str | None = None
    """Why the call failed, for the log. None if it succeeded or if the user did not approve it."""
    elapsed_seconds: float = 0.0
    transient: bool = False
    """Whether the failure may be temporary."""
    sources: tuple[Source, ...] = ()
    pictures: tuple[Picture, ...] = ()
    sent_json: tuple[str, ...] = ()
    """The JSON values that the tool sent, each as text, without the node's secrets."""
    has_more_json: bool = False
    """Whether the tool sent more JSON than is kept."""
    whole: str = ""
    """The complete, redacted result, which a later call may read or refer to."""
    user_text: str = ""
    """The complete result of an answer tool for the user, without the lines about forwarded files."""
    prompt_text: str = ""
    """The text for the prompts of this run, within the limit, with the numbers of sources and, after a cut, a note on
    how to read the rest."""
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
        """Digests of the pictures that the model sees, to distinguish results that differ only in their pictures."""
        return tuple(picture.digest for picture in self.pictures if picture.part)

    @property
    def lasting_size(self) -> int:
        """Approximate bytes that the outcome takes until the run ends: two copies of its text, and its sources."""
        texts = (text for source in self.sources for text in (source.content, *map(str, source.resource.values())))
        return 2 * getsizeof(self.tool_response) + sum(map(len, texts))

    @property
    def condensed(self) -> "ToolOutcome":
        """A copy to keep until the end of the run, without the large parts that only its own round needs."""
        return replace(self, whole="", pictures=(), user_text="")

"""The records of a conversation that the state variable contains.

Records contain the texts of users, models and tools, and the calls that wait for approval, but no system prompt, media,
thoughts, opaque bodies, or notes of a single run. Because records are read back as input, each class is also the schema
of its JSON.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Literal, Self

from dify_plugin.file.entities import FileType
from dify_plugin.file.file import File
from pydantic import BaseModel, ConfigDict, FailFast, Field

from internal.call import JudgedCall, ToolCall, WaitingCall, canonical_json, portable_id
from internal.json_values import MAX_EXACT_INTEGER, rebuilt
from internal.node.tools import Tool, Toolbox
from internal.sources import MAX_TITLE_LENGTH, Source, attribute, escaped
from internal.text.secrets import Redactor
from internal.text.texts import cut_to_size
from prompt import template

type Several[T] = Annotated[tuple[T, ...], FailFast()]
"""A tuple that stops at the first error: a text with a million invalid items would otherwise cause a million errors."""
MAX_SUBTASKS = 8
"""Maximum number of subtasks of a plan. A subtask has fewer attempts."""
type Few[T] = Annotated[tuple[T, ...], Field(max_length=MAX_SUBTASKS), FailFast()]
MAX_FOUND_TOOLS = 40
"""Maximum number of found tools in a state. Later runs offer all found tools."""
type Count = Annotated[int, Field(ge=0, le=MAX_EXACT_INTEGER)]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", hide_input_in_errors=True, defer_build=True)


class FileRecord(_Record):
    """A file that a waiting call names, as Dify described it. Only its address is stored, not its content."""

    name: str
    url: str
    kind: Literal["image", "document", "audio", "video", "custom"]
    mime_type: str | None = None
    filename: str | None = None
    extension: str | None = None
    size: int | None = None


class CallRecord(_Record):
    """A tool call, whose tool is found again by provider and own name, never by the name that the model sees."""

    id: str
    """The provider's id, as prompts have it. The user's answer to a waiting call refers to the call by this id."""
    provider: str
    """The provider of the tool; "" if the node did not have the tool."""
    tool: str
    """The tool's name in Dify, or the name that the model wrote if the node has no such tool."""
    setting: str = ""
    arguments: str
    """The text of a JSON object, as the model wrote it. For a waiting call that refers to results, it contains the
    results, as the user approves it."""
    attached: Several[FileRecord] = ()
    """The files that a waiting call will send."""
    written: str = ""
    """The arguments as the model wrote them, for a waiting call that refers to results."""
    call_id: str = ""
    """The provider's id of a waiting call; "" in states of older versions, where the call gets a portable id."""
    is_asked: bool = True
    """False for a call that waits only because other calls of its round wait. The user is not asked about this call."""
    result: str | None = None
    """The result; None while the call waits."""

    def ended(self, result: str) -> Self:
        """Return the formerly waiting call with its result, the provider's id, and the model's original arguments.

        With a different id or different arguments it would be a different call for the provider, which may refuse it or
        miss its cache.
        """
        as_of_the_model = {
            "id": self.call_id or portable_id(self.id),
            "arguments": self.written or self.arguments,
            "call_id": "",
            "written": "",
        }
        return self.model_copy(update={**as_of_the_model, "result": result, "attached": ()})


class FindingRecord(_Record):
    subtask: str
    answer: str
    completed: bool


class UserRecord(_Record):
    """The user's message at the beginning of a turn."""

    kind: Literal["user"] = "user"
    text: str
    files: Several[str] = ()
    """One line for each file."""
    context: str = ""
    """The ``<context>`` block before the text."""
    findings: Few[FindingRecord] = ()
    """The findings of the subtasks of a plan."""


class RoundRecord(_Record):
    """A turn of the model with its calls and their results."""

    kind: Literal["round"] = "round"
    said: str = ""
    """The text of the turn, without thoughts."""
    content: str = ""
    """The whole turn as the model wrote it; "" if ``said`` is equal, or if thoughts were removed for lack of room."""
    model: str = ""
    """The model that made the calls, as "provider/name". "" in states of older versions."""
    calls: Annotated[tuple[CallRecord, ...], Field(min_length=1), FailFast()]

    @property
    def waiting(self) -> tuple[CallRecord, ...]:
        return tuple(call for call in self.calls if call.result is None)

    def answered(self, results: Iterable[str]) -> Self:
        """Return a copy with these results for the waiting calls, in their order."""
        left = iter(results)
        calls = [call if call.result is not None else call.ended(next(left)) for call in self.calls]
        return self.model_copy(update={"calls": tuple(calls)})


class AnswerRecord(_Record):
    """The agent's answer at the end of a turn."""

    kind: Literal["answer"] = "answer"
    text: str


class SummaryRecord(_Record):
    """A model's summary that replaces the oldest turns. Only the first entry can be a summary."""

    kind: Literal["summary"] = "summary"
    text: str


type EntryRecord = Annotated[UserRecord | RoundRecord | AnswerRecord | SummaryRecord, Field(discriminator="kind")]


class SubtaskRecord(_Record):
    """A subtask of a plan that has waiting calls."""

    name: str
    answer: str = ""
    """The answer; "" while calls of the subtask wait."""
    completed: bool = False
    attempts: Count = 0
    rounds: Count = 0
    advised: Few[str] = ()
    nearest: str = ""
    """The best answer so far that was not accepted."""
    entries: Several[EntryRecord] = ()
    """The conversation of the subtask, beginning with the request; empty once the subtask is done."""


class PlanRecord(_Record):
    """A plan that has waiting calls. The question is the last entry of the state."""

    subtasks: Annotated[tuple[SubtaskRecord, ...], Field(min_length=1, max_length=MAX_SUBTASKS), FailFast()]


class SourceRecord(_Record):
    number: Annotated[int, Field(ge=1, le=MAX_EXACT_INTEGER)]
    title: str
    document_id: str | None = None


class ToolRecord(_Record):
    """A tool that the conversation has found, with its names in Dify."""

    provider: str
    tool: str
    setting: str = ""


class State(_Record):
    """A conversation up to the end of a run."""

    strategy: str
    """The name of the strategy that made the state. Only this strategy can continue the state's waiting calls."""
    entries: Several[EntryRecord] = ()
    plan: PlanRecord | None = None
    sources: Several[SourceRecord] = ()
    """Sources of this conversation, in the order of their numbers. In a long conversation, only the newest are kept."""
    found: Annotated[tuple[ToolRecord, ...], Field(max_length=MAX_FOUND_TOOLS), FailFast()] = ()
    """Tools that prompts offer after the first ones. In a long conversation, only the newest are kept."""
    skills: Several[str] = ()
    """Names of the skills that the conversation has read, in the order of their last reading."""
    last_source: Count = 0
    """The highest number of a source in this conversation."""
    last_call: Count = 0
    """Number of calls that have waited in this conversation."""
    last_result: Count = 0
    """Number of results that have been given an id in this conversation."""

    @property
    def conversations(self) -> tuple[tuple[EntryRecord, ...], ...]:
        """The entries of the state, and the entries of each subtask."""
        return self.entries, *(subtask.entries for subtask in (self.plan.subtasks if self.plan else ()))

    def with_conversations(self, conversations: Iterable[Iterable[EntryRecord]]) -> Self:
        """Return a copy with these entries for the state and for each subtask."""
        entries, *of_subtasks = map(tuple, conversations)
        subtasks = [
            subtask.model_copy(update={"entries": own})
            for subtask, own in zip(self.plan.subtasks if self.plan else (), of_subtasks, strict=True)
        ]
        plan = self.plan and self.plan.model_copy(update={"subtasks": tuple(subtasks)})
        return self.model_copy(update={"entries": entries, "plan": plan})

    @property
    def waiting(self) -> tuple[CallRecord, ...]:
        """The calls that wait for an approval."""
        last = [entries[-1] for entries in self.conversations if entries]
        return tuple(call for entry in last if isinstance(entry, RoundRecord) for call in entry.waiting)

    def redacted(self, secrets: Redactor) -> Self:
        """Return a copy without these secrets. Arguments stay JSON."""
        return self.with_texts(secrets.text, secrets.json_text)

    def with_texts(self, change: Callable[[str], str], change_json: Callable[[str], str]) -> Self:
        """Return a copy with each text changed by ``change``, and each JSON text by ``change_json``."""

        def changed(value: object, name: str) -> object:
            if not isinstance(value, str) or name == "kind":
                return value
            if name in ("arguments", "written") and value:
                return change_json(value)
            return change(value)

        return type(self).model_validate(rebuilt(self.model_dump(), changed))


def found_tools(state: State | None, toolbox: Toolbox) -> dict[str, Tool]:
    """Return the tools that a conversation has found and the node still has, by the names that the model sees."""
    if state is None:
        return {}
    tools = (toolbox.find(record.provider, record.tool, record.setting) for record in state.found)
    return {tool.name: tool for tool in tools if tool and tool.name in toolbox.held_back}


def recorded_tools(found: Iterable[Tool]) -> tuple[ToolRecord, ...]:
    """Return the records of the newest tools that were found."""
    records = [ToolRecord(provider=tool.provider, tool=tool.own_name, setting=tool.setting) for tool in found]
    return tuple(records[-MAX_FOUND_TOOLS:])


# Records in the form in which prompts quote them.

_ONE_RESULT = 4_000
"""Maximum characters of one result."""
_ALL_RESULTS = 12_000
"""Maximum characters of all unread results together."""


def call_of(call: CallRecord, toolbox: Toolbox) -> ToolCall:
    """Return a recorded call as the model would write it now."""
    tool = toolbox.find(call.provider, call.tool, call.setting)
    return ToolCall(call.id, tool.name if tool else call.tool, call.arguments)


def findings_block(findings: Iterable[FindingRecord]) -> str:
    """Return the findings of subtasks, each in its own tag."""
    return "\n".join(
        f'<finding subtask="{attribute(found.subtask)}" completed="{"yes" if found.completed else "no"}">\n'
        f"{escaped(found.answer)}\n</finding>"
        for found in findings
    )


def quoted_result(result: str) -> str:
    """Return a tool's result in the form in which other conversations quote it."""
    return cut_to_size(result, _ONE_RESULT)


def unread_results(results: Iterable[str]) -> str:
    """Return the text of a finding whose model did not use the results in an answer."""
    quoted = "\n\n".join(map(quoted_result, results))
    return template.UNREAD_RESULTS.format(results=cut_to_size(quoted, _ALL_RESULTS))


# Records of a run's work.

_MAX_SOURCES = 300
"""Maximum number of sources in the record of a conversation."""


def record_of(judged: JudgedCall, result: str | None = None) -> CallRecord:
    """Return the record of a call. For a waiting call it has everything that the user approves: arguments and files."""
    call = judged.call
    tool = judged.tool
    record = CallRecord(
        id=call.id,
        provider=tool.provider if tool else "",
        tool=tool.own_name if tool else call.name,
        setting=tool.setting if tool else "",
        arguments=call.arguments_written_back,
        result=result,
    )
    if not isinstance(judged, WaitingCall):
        return record
    attached = tuple(
        FileRecord(name=name, kind=file.type.value, **file.model_dump(exclude={"dify_model_identity", "type"}))
        for name, file in judged.files.items()
    )
    waiting = {"id": judged.id, "call_id": call.id, "attached": attached, "result": None, "is_asked": judged.is_asked}
    if judged.valid.references:
        waiting |= {"arguments": canonical_json(judged.valid.arguments), "written": record.arguments}
    return record.model_copy(update=waiting)


def waiting_files(state: State | None) -> dict[str, File]:
    """Return the files of the waiting calls, by name."""
    attached = [file for call in (state.waiting if state else ()) for file in call.attached]
    return {each.name: File(type=FileType(each.kind), **each.model_dump(exclude={"name", "kind"})) for each in attached}


def settled(state: State) -> tuple[EntryRecord, ...]:
    """Return the conversation of a state, in which the waiting calls are answered as not approved."""
    if not state.waiting:
        return state.entries
    *before, last = state.entries
    if isinstance(last, RoundRecord):
        return (*before, last.answered([template.APPROVAL_NOT_GIVEN] * len(last.waiting)))
    found = tuple(
        FindingRecord(subtask=each.name, answer=each.answer or _unfinished(each), completed=each.completed)
        for each in (state.plan.subtasks if state.plan else ())
    )
    return (*before, last.model_copy(update={"findings": found}))


def _unfinished(subtask: SubtaskRecord) -> str:
    """Return a text about the work of a subtask whose calls were not approved, so that the work is not repeated."""
    rounds = (entry for entry in subtask.entries if isinstance(entry, RoundRecord))
    found = [call.result for entry in rounds for call in entry.calls if call.result is not None]
    if found:
        return f"{template.APPROVAL_NOT_GIVEN}\n\n{unread_results(found)}"
    return template.APPROVAL_NOT_GIVEN


def recorded_sources(before: State | None, entries: Sequence[tuple[int, Source]]) -> tuple[SourceRecord, ...]:
    """Return the sources of the conversation. In a long conversation, only the newest are kept."""
    cut = slice(MAX_TITLE_LENGTH)
    new = [
        SourceRecord(number=number, title=source.label[cut], document_id=source.document_id and source.document_id[cut])
        for number, source in entries[-_MAX_SOURCES:]
    ]
    return (*(before.sources if before else ()), *new)[-_MAX_SOURCES:]


def earlier_media(kind: str, name: str | None) -> str:
    """Return the text that later runs read instead of a file that the user or the model sent."""
    return template.EARLIER_MEDIA.format(kind=kind, name=f" {name}" if name else "")

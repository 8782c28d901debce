"""What a run did, as records of its conversation.

In: the calls of a turn as they ended, the messages of a history, sources. Out: records. Calls of virtual tools are left
out: they hand over what stands elsewhere. Where a call waits, one that was not taken stays: the model has yet to read
why.
"""

from collections.abc import Iterable, Iterator, Sequence

from dify_plugin.entities.model.message import PromptMessage, PromptMessageRole, TextPromptMessageContent
from dify_plugin.file.entities import FileType
from dify_plugin.file.file import File

from internal.conversation.quoted_results import unread_results
from internal.report.sources import Source
from internal.report.tool_calls import CallStatus, EndedCall, ToolCall, WaitingCall
from internal.state.records import (
    AnswerRecord,
    CallRecord,
    EntryRecord,
    FileRecord,
    FindingRecord,
    RoundRecord,
    SourceRecord,
    State,
    SubtaskRecord,
    UserRecord,
)
from internal.tools.toolbox import ToolKind
from prompt import template

_MAX_ID_LENGTH = 100
"""Characters of a provider's id; a longer one is replaced."""
_MAX_SOURCES = 300
_MAX_TITLE_LENGTH = 200
"""Characters."""


def record_of_round(said: str, ended: Sequence[EndedCall]) -> RoundRecord | None:
    """A turn and what became of its calls; None if all of them were of virtual tools."""
    waits = any(each.status is CallStatus.WAITING for each in ended)
    calls = [_record(at, each) for at, each in enumerate(ended, start=1) if _is_recorded(each, waits=waits)]
    return RoundRecord(said=said, calls=tuple(calls)) if calls else None


def _is_recorded(ended: EndedCall, *, waits: bool) -> bool:
    tool = ended.judged.tool
    if ended.call.is_reading:
        return False
    return tool is None or tool.kind is ToolKind.RUNS or (waits and ended.status is CallStatus.REFUSED)


def _record(position: int, ended: EndedCall) -> CallRecord:
    judged, tool = ended.judged, ended.judged.tool
    if isinstance(judged, WaitingCall):
        return waiting_record(judged)
    return CallRecord(
        id=_short_id(judged.call, position),
        provider=tool.provider if tool else "",
        tool=tool.own_name if tool else judged.call.name,
        setting=tool.setting if tool else "",
        arguments=judged.call.written_back().function.arguments,
        result=ended.tool_response,
    )


def waiting_record(call: WaitingCall) -> CallRecord:
    """A call that waits, with all that the user is asked to approve: its checked arguments, and its files."""
    tool = call.valid.tool
    return CallRecord(
        id=call.id,
        provider=tool.provider,
        tool=tool.own_name,
        setting=tool.setting,
        arguments=call.valid.signature.arguments,
        attached=tuple(
            FileRecord(name=name, kind=file.type.value, **file.model_dump(exclude={"dify_model_identity", "type"}))
            for name, file in call.files.items()
        ),
    )


def waiting_files(state: State | None) -> dict[str, File]:
    """The files of the calls that wait, by their names."""
    attached = [file for call in (state.waiting if state else ()) for file in call.attached]
    return {each.name: File(type=FileType(each.kind), **each.model_dump(exclude={"name", "kind"})) for each in attached}


def _short_id(call: ToolCall, position: int) -> str:
    return call.id if 0 < len(call.id) <= _MAX_ID_LENGTH else f"call_{position}"


def records_of_history(history: Iterable[PromptMessage]) -> Iterator[EntryRecord]:
    """The conversation that the node's memory holds; media are named, and system messages are left out."""
    for message in history:
        if text := _text(message):
            if message.role is PromptMessageRole.USER:
                yield UserRecord(text=text)
            elif message.role is PromptMessageRole.ASSISTANT:
                yield AnswerRecord(text=text)


def settled(state: State) -> tuple[EntryRecord, ...]:
    """The conversation of a state, with its waiting calls answered as not approved."""
    if state.plan:
        *before, question = state.entries
        found = tuple(
            FindingRecord(subtask=each.name, answer=each.answer or _unfinished(each), completed=each.completed)
            for each in state.plan.subtasks
        )
        return (*before, question.model_copy(update={"findings": found}))
    if not state.waiting:
        return state.entries
    *before, last = state.entries
    if not isinstance(last, RoundRecord):
        return state.entries
    return (*before, last.answered([template.APPROVAL_NOT_GIVEN] * len(last.waiting)))


def _unfinished(subtask: SubtaskRecord) -> str:
    """What is left of a subtask whose calls were not approved: what it did before must not be done again."""
    rounds = (entry for entry in subtask.entries if isinstance(entry, RoundRecord))
    found = [call.result for entry in rounds for call in entry.calls if call.result is not None]
    return f"{template.APPROVAL_NOT_GIVEN}\n\n{unread_results(found)}" if found else template.APPROVAL_NOT_GIVEN


def recorded_sources(before: State | None, entries: Sequence[tuple[int, Source]]) -> tuple[SourceRecord, ...]:
    """The sources of the conversation, the newest of them in a long one."""
    new = [
        SourceRecord(
            number=number,
            title=source.label[:_MAX_TITLE_LENGTH],
            document_id=source.document_id and source.document_id[:_MAX_TITLE_LENGTH],
        )
        for number, source in entries[-_MAX_SOURCES:]
    ]
    return (*(before.sources if before else ()), *new)[-_MAX_SOURCES:]


def earlier_media(kind: str, name: str | None) -> str:
    """What stands in later runs for a file that the user or the model sent."""
    return template.EARLIER_MEDIA.format(kind=kind, name=f" {name}" if name else "")


def _text(message: PromptMessage) -> str:
    if not isinstance(message.content, list):
        return message.content or ""
    lines = [
        part.data if isinstance(part, TextPromptMessageContent) else earlier_media(part.type.value, part.filename)
        for part in message.content
    ]
    return "\n".join(line for line in lines if line)

"""A recorded conversation as the messages of a prompt.

In: records, and the node's tools, whose present names the calls get. Out: prompt messages: every call has its result.
"""

from collections.abc import Iterable, Iterator

from dify_plugin.entities.model.message import (
    AssistantPromptMessage,
    PromptMessage,
    ToolPromptMessage,
    UserPromptMessage,
)

from internal.report.sources import attribute, escaped
from internal.report.tool_calls import ToolCall
from internal.state.records import AnswerRecord, CallRecord, EntryRecord, FindingRecord, RoundRecord, UserRecord
from internal.text.fairness import in_turns
from internal.tools.names import name_in_history
from internal.tools.toolbox import Toolbox
from prompt import template


def messages_of(entries: Iterable[EntryRecord], toolbox: Toolbox) -> Iterator[PromptMessage]:
    """The messages, in order; a call that still waits has ``template.APPROVAL_NOT_GIVEN`` for its result."""
    for entry in in_turns(entries):
        match entry:
            case UserRecord():
                yield UserPromptMessage(content=_text(entry))
            case AnswerRecord(text=text):
                if text.strip():
                    yield AssistantPromptMessage(content=text)
            case RoundRecord(said=said, calls=calls):
                written = [call_of(call, toolbox).written_back() for call in in_turns(calls)]
                yield AssistantPromptMessage(content=said, tool_calls=written)
                for call in in_turns(calls):
                    result = template.APPROVAL_NOT_GIVEN if call.result is None else call.result
                    name = name_in_history(_name(call, toolbox))
                    yield ToolPromptMessage(content=result, tool_call_id=call.id, name=name)


def call_of(call: CallRecord, toolbox: Toolbox) -> ToolCall:
    """A recorded call as the model would write it now."""
    return ToolCall(call.id, _name(call, toolbox), call.arguments)


def _name(call: CallRecord, toolbox: Toolbox) -> str:
    tool = toolbox.find(call.provider, call.tool, call.setting)
    return tool.name if tool else call.tool


def _text(entry: UserRecord) -> str:
    found = template.EARLIER_FINDINGS.format(findings=findings_block(entry.findings)) if entry.findings else ""
    said = "\n".join([entry.text, *entry.files])
    return "\n\n".join(part for part in (entry.context, said, found) if part)


def findings_block(findings: Iterable[FindingRecord]) -> str:
    """What subtasks found, each in a tag of its own."""
    return "\n".join(
        f'<finding subtask="{attribute(found.subtask)}" completed="{"yes" if found.completed else "no"}">\n'
        f"{escaped(found.answer)}\n</finding>"
        for found in findings
    )

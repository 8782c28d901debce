"""The steps of a conversation. The prompts of this run and the records for later runs are created from them.

Only prompts contain media, opaque bodies and thoughts. Records outlive the run (internal/memory/records.py).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, ClassVar

from dify_plugin.entities.model.message import (
    AssistantPromptMessage,
    PromptMessage,
    PromptMessageContentUnionTypes,
    PromptMessageRole,
    TextPromptMessageContent,
    ToolPromptMessage,
    UserPromptMessage,
)
from pydantic import Field

from internal.call import MAX_PICTURES, CallStatus, ToolCall, ToolOutcome
from internal.clock import in_turns
from internal.memory.records import (
    AnswerRecord,
    EntryRecord,
    RoundRecord,
    SummaryRecord,
    UserRecord,
    call_of,
    earlier_media,
    findings_block,
    record_of,
)
from internal.node.tools import Toolbox, name_in_history
from internal.sources import escaped
from internal.text.texts import cut_to_size
from prompt import template

type Content = str | list[PromptMessageContentUnionTypes]
type Messages = tuple[PromptMessage, ...]
type Records = tuple[EntryRecord, ...]

_MAX_LIST_LENGTH = 2_000
"""Maximum characters of the list of omitted pictures."""


class SummaryMessage(UserPromptMessage):
    """A summary that replaces earlier messages."""

    turns: int = Field(default=0, exclude=True)
    """Number of earlier turns that it replaces, if this run wrote it."""


def summary_message(text: str, turns: int = 0) -> SummaryMessage:
    return SummaryMessage(content=template.SUMMARY.format(summary=escaped(text)), turns=turns)


class PicturesMessage(UserPromptMessage):
    """The pictures that tools created in a round, with their names."""


class NoteMessage(UserPromptMessage):
    """A note of the agent for the model, which is added to the previous message if that has not been sent yet."""


class TurnMessage(AssistantPromptMessage):
    """A turn with calls."""

    model: str = Field(default="", exclude=True)
    """The model that made the calls, as "provider/name". "" if it is not known."""


_NOTE_TAG = re.compile(r"<(?=\s*+/?+\s*+agent_note\b)", re.IGNORECASE)


def as_data(text: str) -> str:
    """Return the text of a tool with the tag of the agent's own notes escaped."""
    return _NOTE_TAG.sub("&lt;", text)


def with_note(message: PromptMessage, note: str) -> PromptMessage:
    """Return the message with a note at its end. After a tool's text, the note has tags that no tool can imitate."""
    block = f"{template.AGENT_NOTE_BEGIN}{note}{template.AGENT_NOTE_END}"
    said = f"\n\n{note}"
    if isinstance(message, ToolPromptMessage | PicturesMessage):
        said = block
    if isinstance(message.content, list):
        return message.model_copy(update={"content": [*message.content, TextPromptMessageContent(data=said)]})
    return message.model_copy(update={"content": f"{message.content or ''}{said}"})


def split_notes(result: str) -> tuple[str, str]:
    """Split a result into the text of the tool and the blocks of notes after it."""
    said, begin, rest = result.partition(template.AGENT_NOTE_BEGIN)
    return said, f"{begin}{rest}"


def user_message(text: str, parts: Sequence[PromptMessageContentUnionTypes] = ()) -> UserPromptMessage:
    if parts:
        return UserPromptMessage(content=[TextPromptMessageContent(data=text), *parts])
    return UserPromptMessage(content=text)


def sound_content(content: Content) -> Content:
    """Return content without blank texts. Consecutive texts are merged, and a single text becomes a plain string.

    A part with an opaque body belongs to the provider and stays unchanged.
    """
    if isinstance(content, str):
        return text_unless_blank(content)
    parts: list[PromptMessageContentUnionTypes] = []
    for is_text, group in groupby(content, _is_plain_text):
        if not is_text:
            parts += group
            continue
        text = "".join(part.data for part in group)
        if not is_blank(text):
            parts.append(TextPromptMessageContent(data=text))
    if len(parts) == 1 and _is_plain_text(parts[0]):
        return parts[0].data
    return parts or ""


def text_unless_blank(text: str) -> str:
    if is_blank(text):
        return ""
    return text


def is_blank(text: str) -> bool:
    return not text or text.isspace()


def _is_plain_text(part: PromptMessageContentUnionTypes) -> bool:
    return isinstance(part, TextPromptMessageContent) and part.opaque_body is None


def paragraphs(*texts: str) -> str:
    """Join the texts that are not blank, with a blank line between them."""
    return "\n\n".join(filter(None, texts))


@dataclass(frozen=True)
class EarlierMessage:
    """A message from the node's memory."""

    message: PromptMessage

    @property
    def messages(self) -> Messages:
        return (self.message,)

    @property
    def records(self) -> Records:
        """Return the record of the message, with names instead of media. A system message is omitted."""
        text = _named_content(self.message)
        if text and self.message.role is PromptMessageRole.USER:
            return (UserRecord(text=text),)
        if text and self.message.role is PromptMessageRole.ASSISTANT:
            return (AnswerRecord(text=text),)
        return ()


def _named_content(message: PromptMessage) -> str:
    """Return the text of a message, with a line instead of each medium."""
    if not isinstance(message.content, list):
        return message.content or ""
    lines = []
    for part in message.content:
        if isinstance(part, TextPromptMessageContent):
            lines.append(part.data)
        else:
            lines.append(earlier_media(part.type.value, getattr(part, "filename", None)))
    return "\n".join(filter(None, lines))


@dataclass(frozen=True)
class EarlierEntry:
    """A recorded step of the conversation. ``toolbox`` has the current names of the node's tools."""

    record: EntryRecord
    toolbox: Toolbox

    @property
    def records(self) -> Records:
        return (self.record,)

    @cached_property
    def messages(self) -> Messages:
        match self.record:
            case UserRecord():
                return (_recorded_question(self.record),)
            case AnswerRecord(text=text):
                return AssistantText(text).messages
            case SummaryRecord(text=text):
                return (summary_message(text),)
            case RoundRecord():
                return _recorded_round(self.record, self.toolbox)


def _recorded_question(record: UserRecord) -> UserPromptMessage:
    text = paragraphs(record.context, "\n".join([record.text, *record.files]))
    if record.findings:
        text = paragraphs(text, template.EARLIER_FINDINGS.format(findings=findings_block(record.findings)))
    return user_message(text)


def _recorded_round(entry: RoundRecord, toolbox: Toolbox) -> Messages:
    """Return the messages of a recorded round. The result of a waiting call is ``template.APPROVAL_NOT_GIVEN``."""
    calls = [call_of(call, toolbox) for call in in_turns(entry.calls)]
    results = [template.APPROVAL_NOT_GIVEN if call.result is None else call.result for call in entry.calls]
    written = [call.written_back() for call in calls]
    turn = TurnMessage(content=entry.content or entry.said, tool_calls=written, model=entry.model)
    return (turn, *_results(calls, results))


def _results(calls: Sequence[ToolCall], results: Sequence[str]) -> Messages:
    """Return one result for each call, in their order."""
    return tuple(
        ToolPromptMessage(content=as_data(result), tool_call_id=call.id, name=name_in_history(call.name))
        for call, result in zip(calls, results, strict=True)
    )


@dataclass(frozen=True)
class UserInput:
    """The user's message in this run, with this turn's files in the form for the model."""

    record: UserRecord
    media: tuple[PromptMessageContentUnionTypes, ...] = ()

    @property
    def records(self) -> Records:
        return (self.record,)

    @cached_property
    def messages(self) -> Messages:
        return (user_message(paragraphs(self.record.context, self.record.text), self.media),)


@dataclass(frozen=True)
class Round:
    """A turn of the model with its calls and their outcomes."""

    content: Content
    """The content as the model wrote it, with thoughts."""
    said: str
    """The text in the content, without thoughts."""
    outcomes: tuple[ToolOutcome, ...]
    """The outcomes in the order of the calls."""
    opaque_body: Any = None
    """Opaque data of the provider, which is passed on and never read."""
    model: str = ""
    """The model that took the turn, as "provider/name"."""
    is_of_tools: bool = True
    """False for a round that only reads the agent's own data and is therefore not a tool round."""

    @property
    def waits(self) -> bool:
        """Whether a call waits for the user's approval, in which case the run ends here."""
        return any(outcome.status is CallStatus.WAITING for outcome in self.outcomes)

    @property
    def messages(self) -> Messages:
        """Return the messages of the round; none if a call waits, because no prompt of this run shows such a round."""
        if self.waits:
            return ()
        calls = [outcome.call for outcome in self.outcomes]
        written = [call.written_back() for call in calls]
        turn = TurnMessage(content=self.content, tool_calls=written, opaque_body=self.opaque_body, model=self.model)
        return (turn, *_results(calls, [outcome.prompt_text for outcome in self.outcomes]))

    @property
    def lasting_results(self) -> tuple[str, ...]:
        return tuple(outcome.record_text for outcome in self.outcomes)

    @property
    def records(self) -> Records:
        """Return the record of the round without calls of virtual tools; nothing if no other call is left."""
        calls = [record_of(each.judged, each.record_text) for each in self.outcomes if self._is_recorded(each)]
        if not calls:
            return ()
        return (RoundRecord(said=self.said, content=self._whole_text, calls=tuple(calls), model=self.model),)

    @property
    def _whole_text(self) -> str:
        """Return the turn as one text, for models that must read their own thoughts again; "" if it has no thoughts."""
        content = sound_content(self.content)
        if not isinstance(content, str) or content == self.said:
            return ""
        return content

    def _is_recorded(self, outcome: ToolOutcome) -> bool:
        """Return whether the call is recorded.

        If a call waits, a refused virtual call is recorded, too, because the model has not read the reason.
        """
        if outcome.call.is_lookup:
            return False
        tool = outcome.judged.tool
        runs = tool is None or tool.runs
        return runs or (self.waits and outcome.status is CallStatus.REFUSED)


@dataclass(frozen=True)
class ResumedRound:
    """A round that an earlier run left open, after its waiting calls have ended."""

    waiting: RoundRecord
    outcomes: tuple[ToolOutcome, ...]
    """The outcomes of the calls that waited, in their order."""
    toolbox: Toolbox

    @property
    def messages(self) -> Messages:
        shown = self.waiting.answered(outcome.prompt_text for outcome in self.outcomes)
        return _recorded_round(shown, self.toolbox)

    @property
    def lasting_results(self) -> tuple[str, ...]:
        return tuple(call.result or "" for call in self._record.calls)

    @property
    def records(self) -> Records:
        return (self._record,)

    @cached_property
    def _record(self) -> RoundRecord:
        return self.waiting.answered(outcome.record_text for outcome in self.outcomes)


@dataclass(frozen=True)
class AssistantText:
    """A turn of the model without calls. Only the answer of the run is recorded, at its end; a draft is not."""

    content: Content
    opaque_body: Any = None

    records: ClassVar[Records] = ()

    @property
    def messages(self) -> Messages:
        """Return the message of the turn. An empty turn is omitted, because some APIs refuse it."""
        is_blank = isinstance(self.content, str) and not self.content.strip()
        if (is_blank or not self.content) and self.opaque_body is None:
            return ()
        return (AssistantPromptMessage(content=self.content, opaque_body=self.opaque_body),)


@dataclass(frozen=True)
class AgentNote:
    """A note of the agent for the model in this run."""

    text: str

    records: ClassVar[Records] = ()

    @property
    def messages(self) -> Messages:
        return (NoteMessage(content=self.text),)


@dataclass(frozen=True)
class Advice:
    """Advice for the next attempt at a subtask, after one that was not accepted."""

    attempt: str
    """The answer of the attempt."""
    text: str

    @property
    def messages(self) -> Messages:
        return (NoteMessage(content=self.text),)

    @property
    def records(self) -> Records:
        return AnswerRecord(text=self.attempt), UserRecord(text=self.text)


@dataclass(frozen=True)
class RoundPictures:
    """The pictures that the tools of a round created. Later runs do not have them."""

    parts: tuple[PromptMessageContentUnionTypes, ...]

    records: ClassVar[Records] = ()

    @classmethod
    def of(cls, outcomes: Iterable[ToolOutcome]) -> "RoundPictures | None":
        """Return the pictures with the names of their tools, and the reasons for omissions; None if there are none."""
        parts: list[PromptMessageContentUnionTypes] = []
        left_out: list[str] = []
        room = MAX_PICTURES
        for outcome in outcomes:
            tool = outcome.call.name
            names: list[str] = []
            seen: list[PromptMessageContentUnionTypes] = []
            for picture in outcome.pictures:
                if picture.part and len(seen) < room:
                    names.append(picture.name)
                    seen.append(picture.part)
                    continue
                why = picture.left_out().why
                left_out.append(template.PICTURE_LEFT_OUT.format(tool=tool, name=picture.name, why=why))
            if seen:
                words = as_data(template.PICTURES_FROM.format(tool=tool, names=", ".join(names)))
                parts += [TextPromptMessageContent(data=words), *seen]
                room -= len(seen)
        if left_out:
            listed = cut_to_size("\n".join(left_out), _MAX_LIST_LENGTH)
            parts.append(TextPromptMessageContent(data=as_data(listed)))
        if not parts:
            return None
        return cls(tuple(parts))

    @property
    def words(self) -> str:
        """The text of the message with the pictures."""
        return "\n".join(part.data for part in self.parts if isinstance(part, TextPromptMessageContent))

    @property
    def messages(self) -> Messages:
        return (PicturesMessage(content=[TextPromptMessageContent(data=template.PICTURES_HEADER), *self.parts]),)


type EarlierStep = EarlierMessage | EarlierEntry
type Step = EarlierStep | UserInput | Round | ResumedRound | AssistantText | AgentNote | Advice | RoundPictures


def records_of(steps: Iterable[Step]) -> list[EntryRecord]:
    """Return the records of these steps for later runs."""
    return [record for step in in_turns(steps) for record in step.records]


def earlier_steps(entries: Iterable[EntryRecord], toolbox: Toolbox) -> tuple[EarlierEntry, ...]:
    return tuple(EarlierEntry(entry, toolbox) for entry in in_turns(entries))


def lasting_results(step: Step) -> Iterator[str]:
    """Yield the tool results of a step for later runs and other conversations, in the order of its messages."""
    match step:
        case Round() | ResumedRound():
            yield from step.lasting_results
        case _:
            yield from (each.get_text_content() for each in step.messages if isinstance(each, ToolPromptMessage))

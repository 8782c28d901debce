"""Converts events to messages for Dify: text in this module, everything else in ``log`` and ``outputs``."""

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass

from dify_plugin.entities.agent import AgentInvokeMessage
from dify_plugin.entities.invoke_message import InvokeMessage
from pydantic_core import to_json

from internal.clock import Clock
from internal.errors import AgentError
from internal.events import (
    AgentThought,
    AnswerBreak,
    AnswerText,
    CallsAnswered,
    Event,
    ExternalImage,
    FileForwarded,
    LogNote,
    RunFinished,
    Shown,
    ShownBatch,
    ThoughtText,
)
from internal.render.log import LogContent, LogTree, error_text
from internal.render.outputs import Variables, closing_messages, decision_summary, file_messages
from internal.render.public import PublicRun, public_file
from internal.sources import source_list
from internal.text.secrets import KnownSecrets
from internal.text.texts import wellformed
from internal.text.thoughts import TextStream

MAX_TEXT_LENGTH = 256 * 1024
"""Maximum characters of one text message. As JSON it has at most 1.5 MiB, far below the line that kills a plugin."""
MAX_MESSAGE_BYTES = 3 * 1024 * 1024
"""Maximum bytes of an outgoing message. A line on stdout may be slightly longer (``MAX_LINE_BYTES``)."""
_CAN_GROW = frozenset(
    {
        InvokeMessage.MessageType.LOG,
        InvokeMessage.MessageType.JSON,
        InvokeMessage.MessageType.VARIABLE,
    }
)
"""Types of messages that contain values of any size. Texts, blobs and sources are split, and addresses are short."""
MAX_AT_ONCE = 100
"""Maximum number of messages without a pause. The daemon forwards a run's messages through a queue of 128 places and
silently drops messages when it is full. With a pause of 10 ms after every 100 messages, none was lost
(docs/host-facts.md, "Bursts of messages")."""
AT_ONCE_SECONDS = 0.020
PAUSE_SECONDS = 0.010


def render(
    events: Iterable[Event],
    secrets: KnownSecrets,
    log_content: LogContent,
    *,
    may_ask: bool = False,
    last_words: str = "",
) -> Generator[AgentInvokeMessage, None, None]:
    """Yield the messages of a run while it runs. ``may_ask`` says whether it may end with a question for approval.

    If the run fails, open rows and thoughts are closed before the failure is raised, without secrets in its text. The
    text that the user has read then ends with ``last_words``, because the host shows no default value after it.
    """
    text = TextStream(may_ask=may_ask)
    logs = LogTree(secrets, log_content)
    try:
        for event in redacted_text(events, secrets):
            if words := _written(event, text):
                yield from _text_messages(words)
            match event:
                case FileForwarded(file):
                    yield from file_messages(public_file(file, secrets.for_people))
                case RunFinished(summary):
                    run = PublicRun.of(summary, secrets.for_people)
                    yield from _text_messages(_list_of_sources(run, summary.sources_heading, text))
                    variables = Variables.of(run)
                    decisions = decision_summary(run, variables)
                    yield logs.summary(summary, decisions)
                    yield from closing_messages(run, variables, decisions)
                case AnswerText() | AnswerBreak() | ThoughtText() | ShownBatch() | AgentThought() | CallsAnswered():
                    pass
                case _:
                    yield from logs.messages(event)
    except Exception as failure:
        yield from _text_messages(text.broken_off(last_words))
        yield from logs.close_all(failure.detail if isinstance(failure, AgentError) else str(failure))
        if isinstance(failure, AgentError):  # ``errors.reported`` shows no text of other errors
            failure.args = (error_text(str(failure), secrets),)
        raise


def redacted_text(events: Iterable[Event], secrets: KnownSecrets) -> Iterator[Event]:
    """Redact the texts of a run, which arrive in pieces.

    If the run fails, the text that is held back is yielded before the failure is raised.
    """
    text = _StreamedText(secrets)
    try:
        for event in events:
            match event:
                case AnswerText() | ThoughtText():
                    yield from text.add(event)
                case ShownBatch(parts):
                    if shown := tuple(redacted for part in parts for redacted in text.add(part)):
                        yield ShownBatch(shown)
                case LogNote():  # is only for the log and may come between two pieces of a text
                    yield event
                case AgentThought(remark):
                    yield AgentThought(secrets.for_people.text(remark))
                case _:
                    yield from text.rest()
                    yield event
    except Exception:
        yield from text.rest()
        raise
    yield from text.rest()


@dataclass
class _StreamedText:
    """The text or thought that is being streamed."""

    secrets: KnownSecrets
    _held: AnswerText | ThoughtText | None = None
    """The end of the text, which may be the beginning of a secret."""

    def add(self, part: Shown) -> Iterator[Shown]:
        """Yield the settled part of the text so far. Every event except a continuation ends the text."""
        if type(part) is not type(self._held):
            yield from self.rest()
        if not isinstance(part, AnswerText | ThoughtText):
            yield part
            return
        certain, held = self.secrets.for_people.split(self._held.text + part.text if self._held else part.text)
        if held:
            self._held = type(part)(held)
        else:
            self._held = None
        if certain:
            yield type(part)(certain)

    def rest(self) -> Iterator[Shown]:
        held = self._held
        self._held = None
        if held:
            yield type(held)(self.secrets.for_people.text(held.text))


def _written(event: Event, text: TextStream) -> str:
    """Return the text that an event adds. Every event except a thought closes an open thought."""
    match event:
        case ShownBatch(parts):
            return "".join(_written(part, text) for part in parts)
        case ThoughtText(thought):
            return text.thought(thought)
        case AgentThought(remark):
            text.remark(remark)
            return ""
        case AnswerBreak():
            return text.new_paragraph()
        case AnswerText(answer):
            return text.answer(answer)
        case FileForwarded(ExternalImage()):  # Dify adds a line to the text if it cannot fetch the image
            return text.leave_a_line()
        case FileForwarded() | RunFinished():
            return text.finish()
        case _:
            return text.close_thought()


def _list_of_sources(run: PublicRun, heading: str, text: TextStream) -> str:
    if not heading:
        return ""
    if listed := source_list(run.answer, (*run.earlier_sources, *run.sources)):
        return text.new_paragraph() + text.answer(f"{heading}\n\n{listed}") + text.finish()
    return ""


def _text_messages(text: str) -> Iterator[AgentInvokeMessage]:
    text = wellformed(text)
    for start in range(0, len(text), MAX_TEXT_LENGTH):
        body = InvokeMessage.TextMessage(text=text[start : start + MAX_TEXT_LENGTH])
        yield AgentInvokeMessage(type=InvokeMessage.MessageType.TEXT, message=body)


def bounded(messages: Iterable[AgentInvokeMessage]) -> Iterator[AgentInvokeMessage]:
    """Yield every message that fits into one line. A larger message loses its contents.

    A longer line would end the process and all its runs. The size of each part of a message is limited where it is
    created, so only a message with very many parts can be too large.
    """
    for message in messages:
        if message.type in _CAN_GROW and len(to_json(message)) > MAX_MESSAGE_BYTES:
            yield _without_contents(message)
        else:
            yield message


def _without_contents(message: AgentInvokeMessage) -> AgentInvokeMessage:
    body = message.message
    said = {"left_out": "too large for one message"}
    changes: dict[str, object] = {"data": said, "metadata": None}
    match body:
        case InvokeMessage.JsonMessage():
            changes = {"json_object": said}
        case InvokeMessage.VariableMessage():
            changes = {"variable_value": None}
    return message.model_copy(update={"message": body and body.model_copy(update=changes)})


def paced(messages: Iterable[AgentInvokeMessage], clock: Clock) -> Iterator[AgentInvokeMessage]:
    """Pause if the last MAX_AT_ONCE messages took less than AT_ONCE_SECONDS.

    Blob chunks do not count, because the daemon does not queue them.
    """
    written: deque[float] = deque(maxlen=MAX_AT_ONCE)
    for message in messages:
        if message.type is InvokeMessage.MessageType.BLOB_CHUNK:
            yield message
            continue
        if len(written) == MAX_AT_ONCE and clock.now() - written[0] < AT_ONCE_SECONDS:
            clock.sleep(PAUSE_SECONDS)
            written.clear()
        yield message
        written.append(clock.now())

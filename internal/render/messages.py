"""Turns events into the messages that Dify understands: text here, the log in log_tree, the rest in outputs."""

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from typing import assert_never

from dify_plugin.entities.agent import AgentInvokeMessage
from dify_plugin.entities.invoke_message import InvokeMessage

from internal.clock import Clock
from internal.errors import AgentError
from internal.events import (
    AnswerBreak,
    AnswerText,
    CallsAnswered,
    Event,
    ExternalImage,
    FileForwarded,
    ModelFinished,
    ModelStarted,
    Noted,
    Remark,
    RequestRepeated,
    RunFinished,
    RunSummary,
    ShownTogether,
    SpanFinished,
    SpanStarted,
    ThoughtText,
    ToolFinished,
    ToolStarted,
)
from internal.render.log import LogTree
from internal.render.outgoing import LogContent, Outgoing, redacted_text
from internal.render.outputs import RunVariables, closing_messages, decision_summary, file_messages
from internal.sources import source_list
from internal.text.secrets import KnownSecrets
from internal.text.texts import wellformed
from internal.text.thoughts import TextStream

# Turns events into the messages that Dify understands: text here, the log in log_tree, the rest in outputs.
#
# If the run fails, what is open is closed before the failure goes on to the host.

MAX_TEXT_BYTES = 256 * 1024
"""Bytes of one text message in UTF-8."""
_MAX_CHARACTER_BYTES = 4


def render(
    events: Iterable[Event], secrets: KnownSecrets, log_content: LogContent, *, may_ask: bool = False
) -> Generator[AgentInvokeMessage, None, None]:
    """The messages of a run, while it happens; ``may_ask``: it may end in a question whether calls may run."""
    out = Outgoing(secrets)
    text, logs = TextStream(may_ask=may_ask), LogTree(out, log_content)
    try:
        for event in redacted_text(events, out):
            yield from _text_messages(_written(event, text))
            match event:
                case FileForwarded(file):
                    yield from file_messages(file, out)
                case RunFinished(summary):
                    yield from _text_messages(_list_of_sources(summary, text, out))
                    variables = RunVariables.of(summary, out)
                    decisions = decision_summary(summary, variables)
                    yield logs.summary(summary, decisions)
                    yield from closing_messages(summary, variables, decisions, out)
                case AnswerText() | AnswerBreak() | ThoughtText() | ShownTogether() | Remark() | CallsAnswered():
                    pass
                case _:
                    yield from logs.messages(event)
    except Exception as failure:
        yield from _text_messages(text.finish())
        yield from logs.close_all(failure.detail if isinstance(failure, AgentError) else str(failure))
        out.clean(failure)
        raise


def _written(event: Event, text: TextStream) -> str:
    """The text that an event adds; any event but a thought closes the thought before it."""
    match event:
        case ShownTogether(parts):
            return "".join(_written(part, text) for part in parts)
        case ThoughtText(thought):
            return text.thought(thought)
        case Remark(remark):
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
        case Noted() | SpanStarted() | SpanFinished() | ModelStarted() | ModelFinished() | RequestRepeated():
            return text.close_thought()
        case ToolStarted() | ToolFinished() | CallsAnswered():
            return text.close_thought()
        case _:
            assert_never(event)


def _list_of_sources(summary: RunSummary, text: TextStream, out: Outgoing) -> str:
    entries = (*summary.earlier_sources, *summary.sources)
    listed = source_list(summary.answer, entries, out.text) if summary.sources_heading else ""
    if not listed:
        return ""
    return text.new_paragraph() + text.answer(f"{summary.sources_heading}\n\n{listed}") + text.finish()


def _text_messages(text: str) -> Iterator[AgentInvokeMessage]:
    """A text in messages whose lines stay far below the length that kills a plugin."""
    for piece in message_texts(wellformed(text)):
        body = InvokeMessage.TextMessage(text=piece)
        yield AgentInvokeMessage(type=InvokeMessage.MessageType.TEXT, message=body)


def message_texts(text: str) -> Iterator[str]:
    """A text in pieces of at most MAX_TEXT_BYTES bytes; no character is cut."""
    start = 0
    while start < len(text):
        piece = text[start : start + MAX_TEXT_BYTES]
        if len(piece) > MAX_TEXT_BYTES // _MAX_CHARACTER_BYTES:
            piece = piece.encode()[:MAX_TEXT_BYTES].decode(errors="ignore")
        yield piece
        start += len(piece)


# Keeps a run's messages from coming faster than the host can take them.
#
# The daemon passes a run's messages on through a queue of 128 places, and drops messages without an error when it is
# full. With a pause of 10 ms after every 100 messages none was lost (docs/host-facts.md, "Bursts of messages").

MAX_AT_ONCE = 100
"""Messages."""
AT_ONCE_SECONDS = 0.020
PAUSE_SECONDS = 0.010


def paced(messages: Iterable[AgentInvokeMessage], clock: Clock) -> Iterator[AgentInvokeMessage]:
    """Pause before the next message when the last MAX_AT_ONCE took less than AT_ONCE_SECONDS.

    Blob chunks do not count: the daemon puts them together before the queue.
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

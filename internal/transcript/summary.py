"""Summaries of messages that do not fit into the window: selects the messages and requests the summary from a model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dify_plugin.entities.model.message import (
    AssistantPromptMessage,
    PromptMessage,
    ToolPromptMessage,
)
from gevent.lock import BoundedSemaphore

from internal.memory.records import EntryRecord, SummaryRecord, UserRecord
from internal.sources import escaped
from internal.text.texts import cut_evenly, cut_to_size
from internal.text.thoughts import without_thoughts
from internal.transcript.steps import AgentNote, SummaryMessage, summary_message
from internal.transcript.transcript import Transcript, estimate_tokens
from prompt import template

MAX_SUMMARY_TOKENS = 1_000
"""Maximum tokens of a summary, as the request says (docs/summaries.md). A token is about four English characters, or
one Japanese or Chinese character."""
_LEAST_TOKENS = 2 * MAX_SUMMARY_TOKENS
"""Minimum tokens to summarize. For fewer tokens, a model call is not worthwhile."""
_RECENT_SHARE = 0.25
"""Share of the window for the newest of the earlier turns, which stay unchanged."""
_KEPT_SHARE = 0.5
"""Share of the window for the part of a prompt that a summary of its rounds does not replace."""
_REQUEST_SHARE = 0.7
"""Share of the window for the text that a model summarizes."""


@dataclass(frozen=True)
class OlderMessages:
    """Consecutive messages that a summary will replace."""

    stretch: range
    messages: tuple[PromptMessage, ...]
    is_before_question: bool

    @classmethod
    def of(cls, transcript: Transcript, tokens: float, limit: float) -> "OlderMessages | None":
        """Choose all earlier turns except the newest ones, or else the rounds of this turn except the newest ones.

        Returns None if the messages are short or already summarized. The prompt has ``tokens`` tokens, and may have
        ``limit``.
        """
        turns = transcript.earlier_turns(limit * _RECENT_SHARE)
        for stretch in (turns, *transcript.earlier_rounds(tokens - limit * _KEPT_SHARE)):
            messages = transcript.messages()[stretch.start : stretch.stop]
            is_new = any(not isinstance(message, SummaryMessage) for message in messages)
            if is_new and transcript.tokens_of(stretch) >= _LEAST_TOKENS:
                return cls(stretch, tuple(messages), stretch is turns)
        return None

    @property
    def turns(self) -> int:
        """Number of recorded turns among the messages. A summary from an earlier run does not count."""
        own = (each.turns if isinstance(each, SummaryMessage) else each.role.value == "user" for each in self.messages)
        if self.is_before_question:
            return sum(own)
        return 0

    def request(self, limit: float, thought_tags: tuple[str, ...]) -> Transcript:
        """Return the request for the summary, which fits into a window of ``limit`` tokens."""
        texts = [text for message in self.messages for text in _texts_of(message, thought_tags)]
        most = limit * _REQUEST_SHARE
        for share in (0.9, 1):  # each text keeps a minimum length, so the sum may still be too long
            texts = ["\n\n".join(cut_evenly(texts, share * most, estimate_tokens))]
        asked = template.SUMMARY_REQUEST.format(conversation=escaped(texts[0]))
        return Transcript(template.SUMMARY_INSTRUCTION, begun=[AgentNote(asked)])


def _texts_of(message: PromptMessage, thought_tags: tuple[str, ...]) -> Iterator[str]:
    """Yield the text of a message as a quotation, without media."""
    text = message.get_text_content()
    match message:
        case SummaryMessage():
            yield text
        case ToolPromptMessage(name=name):
            yield f"[result of {name}]\n{text}"
        case AssistantPromptMessage(tool_calls=calls):
            if said := without_thoughts(text, thought_tags).strip():
                yield f"[assistant]\n{said}"
            yield from (f"[call of {call.function.name}]\n{call.function.arguments}" for call in calls)
        case _:
            yield f"[user]\n{text}"


def _within_tokens(text: str) -> str:
    """Return the text, cut to the maximum tokens of a summary."""
    tokens = estimate_tokens(text)
    while tokens > MAX_SUMMARY_TOKENS:  # parts may have different scripts, so one cut may not be enough
        text = cut_to_size(text, len(text) * MAX_SUMMARY_TOKENS // tokens, template.CHARACTERS_NOT_KEPT.format)
        tokens = estimate_tokens(text)
    return text


@dataclass
class Summaries:
    """The summaries of one run. All its conversations share the summaries of earlier turns."""

    slot: BoundedSemaphore = field(default_factory=lambda: BoundedSemaphore(1))
    """Lock for summaries. Other conversations wait for it, and may then find the summary that they need."""
    asked: int = 0
    has_failed: bool = False
    """Whether a summary failed. After that, the run requests no more summaries."""
    _known: dict[tuple[int, ...], tuple[OlderMessages, SummaryMessage]] = field(default_factory=dict, init=False)
    """Summaries by the identities (``id``) of the messages that they replace. The messages are kept, so that their
    identities are not reused."""
    _of_turns: tuple[int, str] = field(default=(0, ""), init=False)
    """Number of earlier turns that a summary covers, and its text. If there are several, it is the one that covers the
    most turns."""

    def known(self, older: OlderMessages) -> SummaryMessage | None:
        found = self._known.get(tuple(map(id, older.messages)))
        if found:
            return found[1]
        return None

    def store(self, older: OlderMessages, said: str) -> SummaryMessage | None:
        """Store the summary that a model has written and return it; None if it is empty."""
        if not (text := said.strip()):
            self.has_failed = True
            return None
        text = _within_tokens(text)
        message = summary_message(text, older.turns)
        self._known[tuple(map(id, older.messages))] = older, message
        self._of_turns = max(self._of_turns, (older.turns, text))
        return message

    def applied(self, record: Sequence[EntryRecord]) -> tuple[EntryRecord, ...]:
        """Return the record of a conversation with the summary instead of the earlier turns that it covers."""
        turns, text = self._of_turns
        begins = [at for at, entry in enumerate(record) if isinstance(entry, UserRecord)]
        if not 0 < turns < len(begins):
            return tuple(record)
        return SummaryRecord(text=text), *record[begins[turns] :]

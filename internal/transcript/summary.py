"""Summaries in place of what no longer fits into the window: what they cover, and how a model is asked for them."""

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
"""As the request says (docs/summaries.md). A token of English has four characters, one of Japanese or Chinese one."""
_LEAST_TOKENS = 2 * MAX_SUMMARY_TOKENS
"""For less, a model call is not worth it."""
_RECENT_SHARE = 0.25
"""Of the window, for the newest of the earlier turns, which stay as they are."""
_KEPT_SHARE = 0.5
"""Of the window, for what a prompt has besides a summary of its rounds."""
_REQUEST_SHARE = 0.7
"""Of the window, for what a model reads in order to summarise it."""


@dataclass(frozen=True)
class OlderMessages:
    """Messages that follow each other, and that a summary is to replace."""

    stretch: range
    messages: tuple[PromptMessage, ...]
    is_before_question: bool

    @classmethod
    def of(cls, transcript: Transcript, tokens: float, limit: float) -> "OlderMessages | None":
        """Earlier turns but for the newest, else the rounds of this turn but for the newest.

        None if that is little, or summarised already. The prompt has so many ``tokens``, and may have ``limit``.
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
        """How many turns of the run's record they are; a summary of an earlier run stands for none of them."""
        own = (each.turns if isinstance(each, SummaryMessage) else each.role.value == "user" for each in self.messages)
        if self.is_before_question:
            return sum(own)
        return 0

    def request(self, limit: float, thought_tags: tuple[str, ...]) -> Transcript:
        """What asks a model for the summary; it fits into a window of so many tokens."""
        texts = [text for message in self.messages for text in _told(message, thought_tags)]
        most = limit * _REQUEST_SHARE
        for share in (0.9, 1):  # each text keeps a minimum, which may be too much together
            texts = ["\n\n".join(cut_evenly(texts, share * most, estimate_tokens))]
        asked = template.SUMMARY_REQUEST.format(conversation=escaped(texts[0]))
        return Transcript(template.SUMMARY_INSTRUCTION, begun=[AgentNote(asked)])


def _told(message: PromptMessage, thought_tags: tuple[str, ...]) -> Iterator[str]:
    """What a message says, as a quotation; of media nothing."""
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
    """The text, cut to the tokens that a summary may have."""
    tokens = estimate_tokens(text)
    while tokens > MAX_SUMMARY_TOKENS:  # its parts may have different scripts: then once is not enough
        text = cut_to_size(text, len(text) * MAX_SUMMARY_TOKENS // tokens, template.CHARACTERS_NOT_KEPT.format)
        tokens = estimate_tokens(text)
    return text


@dataclass
class Summaries:
    """The summaries of one run; all its conversations share those of the turns before it."""

    slot: BoundedSemaphore = field(default_factory=lambda: BoundedSemaphore(1))
    """The conversation that has it summarises; the others wait, and may find what they need."""
    asked: int = 0
    has_failed: bool = False
    """Then no more are asked for in this run."""
    _known: dict[tuple[int, ...], tuple[OlderMessages, SummaryMessage]] = field(default_factory=dict, init=False)
    """By the identities of the messages that they replace; these are kept, so that no other message gets one."""
    _of_turns: tuple[int, str] = field(default=(0, ""), init=False)
    """How many turns before the run one covers, and its text; of several, the one that covers most."""

    def known(self, older: OlderMessages) -> SummaryMessage | None:
        found = self._known.get(tuple(map(id, older.messages)))
        if found:
            return found[1]
        return None

    def take(self, older: OlderMessages, said: str) -> SummaryMessage | None:
        """The summary that a model has written; None if it says nothing."""
        if not (text := said.strip()):
            self.has_failed = True
            return None
        text = _within_tokens(text)
        message = summary_message(text, older.turns)
        self._known[tuple(map(id, older.messages))] = older, message
        self._of_turns = max(self._of_turns, (older.turns, text))
        return message

    def applied(self, record: Sequence[EntryRecord]) -> tuple[EntryRecord, ...]:
        """The record of a conversation, with the summary in place of the turns before the run that it covers."""
        turns, text = self._of_turns
        begins = [at for at, entry in enumerate(record) if isinstance(entry, UserRecord)]
        if not 0 < turns < len(begins):
            return tuple(record)
        return SummaryRecord(text=text), *record[begins[turns] :]

"""The messages of one conversation, which only grows, and the limits of the model's window and of a request.

The messages are rendered from the steps of the conversation and are always valid for every provider. Earlier messages
change permanently in only three cases: a request would not fit, so older messages are summarized or cut; a subtask is
retried, so each earlier result becomes one line; the host refuses opaque bodies.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from dify_plugin.entities.model.message import (
    AssistantPromptMessage,
    PromptMessage,
    PromptMessageTool,
    SystemPromptMessage,
    TextPromptMessageContent,
    ToolPromptMessage,
    UserPromptMessage,
)
from pydantic_core import to_json

from internal.clock import in_turns
from internal.errors import InvalidParameters, OurWords
from internal.flow import build_round_prompt_messages
from internal.host.session import MAX_REQUEST_BYTES, without_opaque_body
from internal.node.tools import Tool
from internal.node.virtual_tools import NOT_RESULTS, READ_SKILL
from internal.transcript.kept_results import KeptResults
from internal.transcript.request import messages_with_calls_in_text, sound_messages
from internal.transcript.steps import (
    NoteMessage,
    PicturesMessage,
    ResumedRound,
    Round,
    RoundPictures,
    Step,
    SummaryMessage,
    UserInput,
    lasting_results,
    split_notes,
    with_note,
)
from prompt import template

type Shortening = Callable[[PromptMessage], PromptMessage]


def without_result(message: PromptMessage) -> PromptMessage:
    """Replace a tool's result with a one-line note. The agent's notes after it stay."""
    if not isinstance(message, ToolPromptMessage):
        return message
    said, notes = split_notes(message.get_text_content())
    if len(said) <= len(template.ELIDED_TOOL_RESULT):
        return message
    return message.model_copy(update={"content": template.ELIDED_TOOL_RESULT + notes})


def without_finding(message: PromptMessage) -> PromptMessage:
    """Replace a tool's result with a one-line note, unless it is a skill, which is an instruction."""
    if isinstance(message, ToolPromptMessage) and message.name == READ_SKILL:
        return message
    return without_result(message)


def without_first_medium(message: PromptMessage) -> PromptMessage:
    """Replace the first image, document, sound or video with a one-line note."""
    parts = []
    if isinstance(message.content, list):
        parts = message.content
    for position, part in enumerate(parts):
        if not isinstance(part, TextPromptMessageContent):
            note = TextPromptMessageContent(data=template.ELIDED_MEDIA.format(kind=part.type.value))
            return message.model_copy(update={"content": [*parts[:position], note, *parts[position + 1 :]]})
    return message


def without_first_picture(message: PromptMessage) -> PromptMessage:
    """Replace the first picture of a tool with a one-line note."""
    if isinstance(message, PicturesMessage):
        return without_first_medium(message)
    return message


_OPAQUE_BODIES = "opaque bodies"
SHORTENINGS: dict[str, Shortening] = {
    "pictures of tools": without_first_picture,
    "files": without_first_medium,
    "tool results": without_result,
    _OPAQUE_BODIES: without_opaque_body,
}
"""Shortenings in the order in which they are applied, by the log's name for the omitted parts."""


_TOKENS_OF_A_MEDIUM = 1_000
_TURN_BETWEEN = 200
"""Bytes of the assistant's message that a request may insert before a user message."""


@dataclass(frozen=True)
class Weight:
    """The space that messages take in a model's window and in the line of a request."""

    tokens: int = 0
    """Estimated number of tokens. No tokenizer is used, because tokenizers download vocabularies or refuse texts."""
    size: int = 0
    """Bytes in a serialized request, never fewer than the SDK writes."""

    def __add__(self, other: "Weight") -> "Weight":
        return Weight(self.tokens + other.tokens, self.size + other.size)

    def __sub__(self, other: "Weight") -> "Weight":
        return Weight(self.tokens - other.tokens, self.size - other.size)


def estimate_tokens(text: str) -> int:
    """Return a quarter of the number of ASCII characters plus the number of other characters."""
    if text.isascii():
        ascii_characters = len(text)
    else:
        ascii_characters = len(text.encode("ascii", "ignore"))
    return ascii_characters // 4 + len(text) - ascii_characters


def weight_of(message: PromptMessage) -> Weight:
    tokens = 0
    bodies = []
    if isinstance(message.content, str):
        tokens = estimate_tokens(message.content)
    for part in message.content if isinstance(message.content, list) else ():
        if isinstance(part, TextPromptMessageContent):
            tokens += estimate_tokens(part.data)
        else:
            tokens += _TOKENS_OF_A_MEDIUM
        bodies.append(part.opaque_body)
    if isinstance(message, AssistantPromptMessage):
        for call in message.tool_calls:
            tokens += estimate_tokens(call.function.name + call.function.arguments)
        bodies.append(message.opaque_body)
    # Opaque bodies count like text, because a provider counts the reasoning that it unpacks from them.
    tokens += sum(estimate_tokens(to_json(body).decode()) for body in bodies if body is not None)
    return Weight(tokens, len(to_json(message)) + 2 + _TURN_BETWEEN * isinstance(message, UserPromptMessage))


@dataclass(frozen=True)
class _Entry:
    message: PromptMessage
    weight: Weight
    number: int
    """Number of messages in the conversation before it. For a summary: before the last message that it replaces."""
    for_others: str = ""
    """The text of a result of this run for other conversations, without the note on how to read more of it."""


class Transcript:
    """One conversation with the model."""

    def __init__(
        self,
        instruction: str = "",
        earlier: Iterable[Step] = (),
        begun: Iterable[Step] = (),
        kept_results: KeptResults | None = None,
        offered: Mapping[str, Tool] = MappingProxyType({}),
    ) -> None:
        """Open a conversation with the system prompt, the ``earlier`` turns, and the turn that has ``begun``.

        Without ``begun``, the turn begins with the last user message.
        """
        self.kept_results = kept_results or KeptResults()
        self.result_ids: list[str] = []
        """Ids of the kept results of this conversation."""
        self._offered_first = frozenset(offered)
        self.offered: dict[str, Tool] = dict(offered)
        """Tools that were added during the conversation, in this order. Prompts offer them after the others."""
        self.steps: list[Step] = list(earlier)
        """The whole conversation. Nothing is ever removed from it."""
        self._earlier = len(self.steps)
        self.rounds = 0
        self._entries: list[_Entry] = []
        self.weight = Weight()
        self.length = 0
        """Number of messages so far, including omitted messages."""
        self._sent = 0
        """Number of messages that were in a request. Messages that were sent do not change."""
        opening = build_round_prompt_messages(
            history_prompt_messages=(message for step in in_turns(self.steps) for message in step.messages),
            system_message=SystemPromptMessage(content=instruction) if instruction else None,
            user_message=None,
        )
        for message in in_turns(opening):
            self._append(message)
        self._question = len(self._entries)
        """The place of the question."""
        for step in in_turns(begun):
            self._add(step)
        if self._question == len(self._entries):
            self._question = max((at for at, each in enumerate(self._entries) if _is_of_user(each)), default=0)
        self._added = self._question
        """The position of the user's addition to the question, or of the question if nothing was added."""

    @property
    def own_steps(self) -> list[Step]:
        """The steps after the earlier turns."""
        return self.steps[self._earlier :]

    def messages(self) -> list[PromptMessage]:
        """Return the messages in their stored form."""
        return [entry.message for entry in self._entries]

    def request(self, model: str) -> list[PromptMessage]:
        """Return the prompt of the next request to this model, in a form that every provider accepts."""
        self._sent = self.length
        return sound_messages(self.messages(), model)

    def request_in_text(self, model: str, tools: Sequence[PromptMessageTool]) -> list[PromptMessage]:
        """Return the prompt for a model that writes its calls as text. Notes announce tools that were offered later."""
        self._sent = self.length
        later = self.offered.keys() - self._offered_first
        first = [tool for tool in tools if tool.name not in later]
        return sound_messages(messages_with_calls_in_text(self.messages(), first), model)

    def append(self, step: Step) -> None:
        """Append a step. Further text of the user is added to the question."""
        if isinstance(step, UserInput):
            self._added = len(self._entries)
        if isinstance(step, ResumedRound) or (isinstance(step, Round) and step.is_of_tools and not step.waits):
            self.rounds += 1
        self._add(step)

    def results_since(self, length: int) -> list[str]:
        """Return the tool results after the first ``length`` messages, and their summaries, for other conversations."""
        return [
            entry.for_others or entry.message.get_text_content()
            for entry in self._entries
            if entry.number >= length
            and (
                isinstance(entry.message, SummaryMessage)
                or (isinstance(entry.message, ToolPromptMessage) and entry.message.name not in NOT_RESULTS)
            )
        ]

    def shorten(self, shortening: Shortening, is_enough: Callable[[], bool] = lambda: False) -> int:
        """Shorten messages, the oldest first, until ``is_enough`` says so; return the number of changes."""
        times = 0
        for position in range(len(self._entries)):
            while not is_enough():
                before = self._entries[position]
                if (shorter := shortening(before.message)) is before.message:
                    break
                said, _ = split_notes(shorter.get_text_content())
                entry = _Entry(shorter, weight_of(shorter), before.number, said)
                self.weight += entry.weight - before.weight
                self._entries[position] = entry
                times += 1
        return times

    def tokens_of_opaque_bodies(self) -> int:
        """Return the number of tokens that a provider's opaque bodies take in the messages."""
        tokens = 0
        for entry in in_turns(self._entries):
            without = without_opaque_body(entry.message)
            if without is not entry.message:
                tokens += entry.weight.tokens - weight_of(without).tokens
        return tokens

    def drop_oldest_turn(self) -> bool:
        """Permanently drop the oldest turn before the question; False if none is left."""
        entries = self._entries
        stays = (SystemPromptMessage, SummaryMessage)
        first = next((at for at, each in enumerate(entries) if not isinstance(each.message, stays)), len(entries))
        if first >= self._question:
            return False
        end = next((at for at in range(first + 1, self._question) if _is_of_user(entries[at])), self._question)
        self.weight -= sum((entry.weight for entry in entries[first:end]), Weight())
        del entries[first:end]
        self._question -= end - first
        self._added -= end - first
        return True

    def earlier_turns(self, recent: float) -> range:
        """Return the positions of the turns before the question, except the newest with ``recent`` tokens in total."""
        first = sum(isinstance(each.message, SystemPromptMessage) for each in self._entries[:1])
        end = self._question
        newest = 0
        for at in range(self._question - 1, first - 1, -1):
            newest += self._entries[at].weight.tokens
            if newest > recent:
                return range(first, end)
            if _is_of_user(self._entries[at]):
                end = at
        return range(first, first)

    def earlier_rounds(self, excess: float) -> Iterator[range]:
        """Yield the positions of the oldest rounds with ``excess`` tokens in total, never including the last round.

        The first rounds are those between the question and the user's addition to it, followed by the rounds after it.
        """
        size = len(self._entries)
        for part in (range(self._question + 1, self._added), range(self._added + 1, size)):
            no_results = (at for at in part if not isinstance(self._entries[at].message, ToolPromptMessage))
            first = end = next(no_results, part.stop)  # a forged state may begin with results
            oldest = 0
            for at in range(first, part.stop):
                if isinstance(self._entries[at].message, AssistantPromptMessage):
                    end = at
                    if oldest >= excess:
                        break
                oldest += self._entries[at].weight.tokens
            else:
                if part.stop != size:
                    end = part.stop
            yield range(first, end)

    def tokens_of(self, stretch: range) -> int:
        return sum(self._entries[at].weight.tokens for at in stretch)

    def fold(self, stretch: range, summary: SummaryMessage) -> None:
        """Permanently replace consecutive messages with a summary."""
        gone = self._entries[stretch.start : stretch.stop]
        entry = _Entry(summary, weight_of(summary), gone[-1].number, summary.get_text_content())
        self.weight += entry.weight - sum((each.weight for each in gone), Weight())
        self._entries[stretch.start : stretch.stop] = [entry]
        self._question -= len(gone) - 1 if stretch.start < self._question else 0
        self._added -= len(gone) - 1 if stretch.start < self._added else 0

    def _add(self, step: Step) -> None:
        if not isinstance(step, RoundPictures):  # pictures have no records, and a few would fill a run's memory
            self.steps.append(step)
        lasting = lasting_results(step)
        for message in step.messages:
            if isinstance(message, NoteMessage) and self._joins_last(message):
                continue
            self._append(message, next(lasting) if isinstance(message, ToolPromptMessage) else "")

    def _joins_last(self, note: NoteMessage) -> bool:
        """Add a note to the last message unless that was sent or is from the model; return whether it was added."""
        if self._sent == self.length or not self._entries:
            return False
        last = self._entries[-1]
        if not isinstance(last.message, ToolPromptMessage | UserPromptMessage):
            return False
        message = with_note(last.message, note.get_text_content())
        clean = last.for_others or last.message.get_text_content()
        self._entries[-1] = _Entry(message, weight_of(message), last.number, clean)
        self.weight += self._entries[-1].weight - last.weight
        return True

    def _append(self, message: PromptMessage, for_others: str = "") -> None:
        entry = _Entry(message, weight_of(message), self.length, for_others)
        self._entries.append(entry)
        self.length += 1
        self.weight += entry.weight


def _is_of_user(entry: _Entry) -> bool:
    return isinstance(entry.message, UserPromptMessage)


_KEPT_SHARE = 0.75
"""Share of the limit to which a prompt that is too long is shortened, so that the next round need not shorten it
again."""


@dataclass(frozen=True)
class Window:
    """The limits for the requests of one run."""

    tools: Sequence[PromptMessageTool]
    context_size: int | None = None
    max_tokens: int = 0
    settings_bytes: int = 0
    """Bytes of the model's parameters and stop words in each request."""

    @property
    def prompt_tokens(self) -> float:
        """Maximum tokens of a prompt; infinite if the context size is unknown."""
        if self.context_size is None:
            return math.inf
        return self.context_size - min(self.max_tokens, self.context_size // 2)

    def fit(self, transcript: Transcript) -> Iterator[OurWords]:
        """Shorten a prompt that does not fit, and yield sentences for the log.

        Raises ``InvalidParameters`` if it cannot be shortened enough.
        """
        weight = self.weigh(transcript)
        left_out = ""
        if weight.size > MAX_REQUEST_BYTES:
            left_out = _shorten(transcript, SHORTENINGS, lambda: self.weigh(transcript).size <= MAX_REQUEST_BYTES)
            weight = self.weigh(transcript)
        if weight.size > MAX_REQUEST_BYTES:
            raise InvalidParameters(
                f"the prompt has {weight.size:,} bytes without images, tool results and earlier turns; at most "
                f"{MAX_REQUEST_BYTES:,} reach the host. Shorten the instruction, query, context or state."
            )
        if left_out:
            yield OurWords(f"the request was too large for the host; left out, the oldest first: {left_out}")
        if weight.tokens > self.prompt_tokens:
            yield from self._fit_tokens(transcript, self.prompt_tokens)

    def shrink(self, transcript: Transcript) -> Iterator[OurWords]:
        """Shorten a prompt that the provider reported as too long. Yields nothing if nothing can be shortened."""
        yield from self._fit_tokens(transcript, self.weigh(transcript).tokens)

    def weigh(self, transcript: Transcript) -> Weight:
        return transcript.weight + self._weight_beside

    def room(self, transcript: Transcript) -> float:
        """Return how many tokens may be added to a request; infinite if the context size is unknown."""
        return max(0, self.prompt_tokens - self.weigh(transcript).tokens)

    @cached_property
    def _weight_beside(self) -> Weight:
        written = ",".join(tool.model_dump_json() for tool in self.tools)
        return Weight(estimate_tokens(written), len(written.encode()) + self.settings_bytes)

    def leave_out_what_is_no_text(self, transcript: Transcript, limit: float) -> Iterator[OurWords]:
        """Remove content that is not text if a prompt has more tokens than the limit.

        Opaque bodies are reasoning that is kept for a provider. If opaque bodies alone exceed the limit, the oldest are
        removed. Otherwise pictures of tools are removed, and then opaque bodies that alone still exceed the limit.
        """
        most = limit * _KEPT_SHARE
        for kind in (_OPAQUE_BODIES, "pictures of tools", _OPAQUE_BODIES):
            tokens = self.weigh(transcript).tokens
            if tokens <= limit:
                return
            if kind == _OPAQUE_BODIES and tokens - transcript.tokens_of_opaque_bodies() > limit:
                continue
            left_out = transcript.shorten(SHORTENINGS[kind], lambda: self.weigh(transcript).tokens <= most)
            if left_out:
                yield _too_long(f"{left_out} {kind}")

    def _fit_tokens(self, transcript: Transcript, limit: float) -> Iterator[OurWords]:
        kinds = ("pictures of tools", "tool results", _OPAQUE_BODIES)
        most = int(limit * _KEPT_SHARE)
        if left_out := _shorten(transcript, kinds, lambda: self.weigh(transcript).tokens <= most):
            yield _too_long(left_out)


def _too_long(left_out: str) -> OurWords:
    return OurWords(f"the prompt was too long for the model; left out, the oldest first: {left_out}")


def _shorten(transcript: Transcript, kinds: Iterable[str], is_enough: Callable[[], bool]) -> str:
    """Remove one kind of content after another, then whole turns, until ``is_enough`` says so.

    Returns the numbers of removed items as text.
    """
    left_out = {kind: transcript.shorten(SHORTENINGS[kind], is_enough) for kind in kinds}
    left_out["earlier turns"] = 0
    while not is_enough() and transcript.drop_oldest_turn():
        left_out["earlier turns"] += 1
    return ", ".join(f"{number} {kind}" for kind, number in left_out.items() if number)

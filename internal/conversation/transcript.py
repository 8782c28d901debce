"""One conversation with the model: append-only, and valid for every provider at any time.

In: the opening messages, then rounds (an assistant turn and one result per call, same order, same ids). Out: the
messages of the next request, which begin with exactly those of the request before. Messages change in three cases only,
and for good: when a request would not fit, they are shortened and old turns left out (window); between two attempts at
a subtask, one line is left of each earlier result; and they lose their opaque bodies when the host refuses those.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from dify_plugin.entities.model.message import (
    AssistantPromptMessage,
    PromptMessage,
    PromptMessageContentUnionTypes,
    SystemPromptMessage,
    ToolPromptMessage,
    UserPromptMessage,
)

from internal.conversation.long_results import LongResults, ReadableResults
from internal.conversation.shortening import Shortening
from internal.conversation.weight import Weight, weight_of
from internal.host.request import without_opaque_body
from internal.report.tool_calls import EndedCall
from internal.state.records import EntryRecord, UserRecord
from internal.text.fairness import in_turns
from internal.tools.names import name_in_history
from internal.tools.virtual_tools import SUBMISSIONS

type Content = str | list[PromptMessageContentUnionTypes]


@dataclass
class HostHabits:
    """What a run has learnt about its host; its conversations share it."""

    takes_opaque_bodies: bool = True


class Transcript:
    """The messages of one conversation."""

    def __init__(
        self,
        opening: Iterable[PromptMessage],
        habits: HostHabits | None = None,
        long_results: LongResults | None = None,
        record: Iterable[EntryRecord] = (),
        kept: int = 0,
    ) -> None:
        """``kept`` messages at the end of the opening are no earlier turns; 0 means from the last user message on."""
        self.long_results = ReadableResults(long_results or LongResults())
        self.record: list[EntryRecord] = list(record)
        """What a later run needs of the conversation; without notes, which are about this run."""
        self._messages: list[PromptMessage] = []
        self._weights: list[Weight] = []
        self._weight = Weight()
        self._rounds = 0
        self._left_out = 0
        self._for_others: dict[int, str] = {}  # by position: a result without the note on how to read on
        self._habits = habits or HostHabits()
        self._had_opaque_bodies_dropped = False
        for message in in_turns(opening):
            self._append(message)
        last = max((at for at, each in enumerate(self._messages) if _is_of_user(each)), default=0)
        self._question = len(self._messages) - kept if kept else last

    @property
    def rounds(self) -> int:
        """Tool rounds appended so far."""
        return self._rounds

    @property
    def length(self) -> int:
        """How many messages it has had; those of turns that were left out count too."""
        return self._left_out + len(self._messages)

    @property
    def weight(self) -> Weight:
        """The weight of all messages; each is weighed once."""
        self._drop_refused_bodies()
        return self._weight

    def messages(self) -> list[PromptMessage]:
        """The prompt of the next request; the list is the caller's, the messages are not."""
        self._drop_refused_bodies()
        return list(self._messages)

    def append_round(
        self,
        content: Content,
        opaque_body: Any,  # noqa: ANN401 - the provider's
        ended: Sequence[EndedCall],
        *,
        is_tool_round: bool = True,
    ) -> None:
        """Append an assistant turn that called tools, and one result for each of its calls, in their order.

        ``content`` is what the model said, thoughts included: some providers rebuild their reasoning from it.
        """
        self._rounds += is_tool_round
        calls = [each.call.written_back() for each in ended]
        self._append(AssistantPromptMessage(content=content, tool_calls=calls, opaque_body=opaque_body))
        for each in ended:
            name = name_in_history(each.call.name)
            if each.shown is not None:
                self._for_others[self.length] = each.tool_response
            self._append(ToolPromptMessage(content=each.read_by_model, tool_call_id=each.call.id, name=name))

    def append_restored(self, messages: Iterable[PromptMessage], for_others: Iterable[PromptMessage]) -> None:
        """Append a round that an earlier run began; ``for_others`` are the same messages without notes for this run."""
        self._rounds += 1
        for message, other in zip(messages, for_others, strict=True):
            if message.content != other.content:
                self._for_others[self.length] = other.get_text_content()
            self._append(message)

    def append_question(self, message: UserPromptMessage, record: UserRecord) -> None:
        """Append what the user says beside the answer to a call that waited."""
        self._append(message)
        self.record.append(record)

    def append_answer(self, content: Content, opaque_body: Any) -> None:  # noqa: ANN401
        """Append an assistant turn without calls; one with nothing in it is left out, since some APIs refuse it."""
        said = content.strip() if isinstance(content, str) else content
        if said or opaque_body is not None:
            self._append(AssistantPromptMessage(content=content, opaque_body=opaque_body))

    def append_note(self, text: str) -> None:
        """Append a message to the model at the end, which leaves the prefix unchanged."""
        self._append(UserPromptMessage(content=text))

    def drop_opaque_bodies(self) -> None:
        """Send no opaque bodies from now on, in all conversations of the run."""
        self._habits.takes_opaque_bodies = False

    def results_since(self, length: int) -> list[str]:
        """The tool results behind the first so many messages, as a reader outside of this conversation needs them.

        Left out are notes that mean something here alone, and answers to what was handed over.
        """
        start = max(length, self._left_out)
        return [
            self._for_others.get(position, message.get_text_content())
            for position, message in enumerate(self._messages[start - self._left_out :], start=start)
            if isinstance(message, ToolPromptMessage) and message.name not in SUBMISSIONS
        ]

    def shorten(self, shortening: Shortening, is_enough: Callable[[], bool] = lambda: False) -> int:
        """Shorten messages, the oldest first, until it is enough or nothing is left; how often that was possible."""
        position = times = 0
        for _ in in_turns(repeat(None)):
            if position == len(self._messages) or is_enough():
                break
            shorter = shortening(self._messages[position])
            if shorter is self._messages[position]:
                position += 1
            else:
                self._replace(position, shorter)
                times += 1
        return times

    def drop_oldest_turn(self) -> bool:
        """Leave out the oldest turn before the question, for good; False when none is left."""
        first = next((at for at, each in enumerate(self._messages) if not isinstance(each, SystemPromptMessage)), 0)
        if first >= self._question:
            return False
        later = (at for at in range(first + 1, self._question) if _is_of_user(self._messages[at]))
        end = next(later, self._question)
        self._weight -= sum(self._weights[first:end], Weight())
        del self._messages[first:end], self._weights[first:end]
        self._question -= end - first
        self._left_out += end - first
        return True

    def _append(self, message: PromptMessage) -> None:
        message = message if self._habits.takes_opaque_bodies else without_opaque_body(message)
        weight = weight_of(message)
        self._messages.append(message)
        self._weights.append(weight)
        self._weight += weight

    def _replace(self, position: int, message: PromptMessage) -> None:
        weight = weight_of(message)
        self._for_others.pop(position + self._left_out, None)
        self._weight += weight - self._weights[position]
        self._messages[position], self._weights[position] = message, weight

    def _drop_refused_bodies(self) -> None:
        """Apply, once, what any conversation of the run has learnt."""
        if not (self._habits.takes_opaque_bodies or self._had_opaque_bodies_dropped):
            self._had_opaque_bodies_dropped = True
            self.shorten(without_opaque_body)


def _is_of_user(message: PromptMessage) -> bool:
    return isinstance(message, UserPromptMessage)

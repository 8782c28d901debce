"""One conversation with the model: append-only, and valid for every provider at any time.

In: the opening messages, then rounds (an assistant turn and one result per call, same order, same ids). Out: the
messages of the next request, which begin with exactly those of the last one. Only two things may shrink, for good:
tool results and media become one-line notes when a request would not fit (window), and opaque bodies are left out then
or when the host refuses them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dify_plugin.entities.model.message import (
    AssistantPromptMessage,
    PromptMessage,
    PromptMessageContentUnionTypes,
    TextPromptMessageContent,
    ToolPromptMessage,
    UserPromptMessage,
)

from internal.host.request import carries_opaque_body, without_opaque_body
from internal.report.tool_calls import EndedCall
from internal.tools.names import name_in_history
from prompt import template

type Content = str | list[PromptMessageContentUnionTypes]


@dataclass
class HostHabits:
    """What a run has learnt of its host; all its conversations share it."""

    takes_opaque_bodies: bool = True


class Transcript:
    """The messages of one conversation."""

    def __init__(self, opening: Sequence[PromptMessage], habits: HostHabits | None = None) -> None:
        self._messages: list[PromptMessage] = list(opening)
        self._opening_length = len(self._messages)
        self._rounds = 0
        self._habits = habits or HostHabits()

    @property
    def rounds(self) -> int:
        """Rounds appended so far."""
        return self._rounds

    def messages(self) -> list[PromptMessage]:
        """The prompt of the next request; the list is the caller's, the messages are not."""
        if not self._habits.takes_opaque_bodies:
            self._messages = [without_opaque_body(message) for message in self._messages]
        return list(self._messages)

    def append_round(self, content: Content, opaque_body: Any, ended: Sequence[EndedCall]) -> None:  # noqa: ANN401
        """Append an assistant turn that called tools, and one result for each of its calls, in their order.

        ``content`` is what the model said, thoughts included: some providers rebuild their reasoning from it.
        """
        self._rounds += 1
        self._append_turn(content, opaque_body, [each.call.written_back() for each in ended])
        self._messages += [
            ToolPromptMessage(
                content=each.tool_response,
                tool_call_id=each.call.id,
                name=name_in_history(each.call.name),
            )
            for each in ended
        ]

    def append_answer(self, content: Content, opaque_body: Any) -> None:  # noqa: ANN401
        """Append an assistant turn without calls; one with nothing in it is left out, since some APIs refuse it."""
        said = content.strip() if isinstance(content, str) else content
        if said or opaque_body is not None:
            self._append_turn(content, opaque_body, [])

    def _append_turn(
        self,
        content: Content,
        opaque_body: Any,  # noqa: ANN401
        calls: list[AssistantPromptMessage.ToolCall],
    ) -> None:
        self._messages.append(
            AssistantPromptMessage(
                content=content,
                tool_calls=calls,
                opaque_body=opaque_body,
            )
        )

    def append_note(self, text: str) -> None:
        """Append a word to the model at the tail, where it leaves the prefix as it is."""
        self._messages.append(UserPromptMessage(content=text))

    def drop_opaque_bodies(self) -> None:
        """Do without opaque bodies from now on, in all conversations of the run."""
        self._habits.takes_opaque_bodies = False

    def results_since(self, rounds: int) -> list[str]:
        """The tool results of the rounds after the first so many."""
        seen, results = 0, []
        for message in self._messages[self._opening_length :]:
            if isinstance(message, AssistantPromptMessage) and message.tool_calls:
                seen += 1
            elif isinstance(message, ToolPromptMessage) and seen > rounds:
                results.append(message.get_text_content())
        return results

    def trimmable_results(self) -> Iterator[int]:
        """Positions of the tool results that are still whole, oldest first."""
        for position in range(self._opening_length, len(self._messages)):
            message = self._messages[position]
            if isinstance(message, ToolPromptMessage) and len(str(message.content)) > len(template.ELIDED_TOOL_RESULT):
                yield position

    def trim_result(self, position: int) -> None:
        self._messages[position] = self._messages[position].model_copy(update={"content": template.ELIDED_TOOL_RESULT})

    def trimmable_opaque_bodies(self) -> Iterator[int]:
        """Positions of the messages that still carry an opaque body, oldest first."""
        for position, message in enumerate(self._messages):
            if carries_opaque_body(message):
                yield position

    def trim_opaque_body(self, position: int) -> None:
        self._messages[position] = without_opaque_body(self._messages[position])

    def trimmable_media(self) -> Iterator[tuple[int, int]]:
        """Message and part of every medium that is still whole, oldest first."""
        for position, message in enumerate(self._messages):
            for part, content in enumerate(message.content if isinstance(message.content, list) else ()):
                if not isinstance(content, TextPromptMessageContent):
                    yield position, part

    def trim_media(self, position: int, part: int) -> None:
        message = self._messages[position]
        parts = list(message.content) if isinstance(message.content, list) else []
        parts[part] = TextPromptMessageContent(data=template.ELIDED_MEDIA.format(kind=parts[part].type.value))
        self._messages[position] = message.model_copy(update={"content": parts})

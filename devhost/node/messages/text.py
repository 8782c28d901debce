"""What Dify's page gets during a run: text in events, with repaired think tags.

In: the messages as the node takes them. Out: the messages that the page sees. Newer Dify (its own `think_tags.py`,
September 2026) repairs tags and counts every tag, quoted ones too; an older one passes text on as it was said.
"""

import re
from collections.abc import Iterator

from devhost.node.messages.message import Message
from devhost.node.messages.thought_spans import possible_tag

EVENT_CHARACTERS = 64
OPENING, CLOSING = "<think>", "</think>"
_TAG = re.compile(f"{OPENING}|{CLOSING}")


class NodeText:
    def __init__(self) -> None:
        self.repairs: list[str] = []
        """The kinds of message before which a thought was closed; the end of the text is not among them."""
        self._said: list[str] = []
        self._passed: list[str] = []
        self._open = False
        self._waiting = ""

    @property
    def said(self) -> str:
        """The text as the strategy sent it, and as an older Dify stores it."""
        return "".join(self._said)

    @property
    def passed(self) -> str:
        """All text so far: what was passed on, and what still waits."""
        return "".join([*self._passed, self._waiting])

    def take(self, message: Message) -> Iterator[Message]:
        match message.type:
            case "text":
                yield from self._feed(message.text)
            case "link":
                yield from self._interrupt("a link")
                yield from self._feed(f"Link: {message.text}\n")
            case "log":
                yield from self._interrupt("a log")
                yield message
            case _:
                yield message

    def finish(self) -> Iterator[Message]:
        yield from self._flush()
        yield from self._close()

    def _feed(self, text: str) -> Iterator[Message]:
        """A tail that may become a tag waits for the next piece."""
        self._said.append(text)
        text = self._waiting + text
        cut = len(text) - possible_tag(text)
        ready, self._waiting = text[:cut], text[cut:]
        yield from self._pass_on(_TAG.sub(self._repaired, ready))

    def _repaired(self, tag: re.Match[str]) -> str:
        was_open, self._open = self._open, tag.group() == OPENING
        if not (was_open and self._open):
            return tag.group()
        self.repairs.append(f"another {OPENING}")
        return CLOSING + OPENING

    def _interrupt(self, by: str) -> Iterator[Message]:
        yield from self._flush()
        if self._open:
            self.repairs.append(by)
        yield from self._close()

    def _flush(self) -> Iterator[Message]:
        waiting, self._waiting = self._waiting, ""
        yield from self._pass_on(waiting)

    def _close(self) -> Iterator[Message]:
        was_open, self._open = self._open, False
        yield from self._pass_on(CLOSING if was_open else "")

    def _pass_on(self, text: str) -> Iterator[Message]:
        self._passed.append(text)
        for start in range(0, len(text), EVENT_CHARACTERS):
            yield Message("text", {"text": text[start : start + EVENT_CHARACTERS]})

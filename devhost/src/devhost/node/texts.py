"""The text of an answer: cut at its think tags, and as Dify's page gets it."""

import re
from collections.abc import Iterator

from devhost.node.messages import Message

# A streamed answer, cut at its think tags wherever chunk borders cut them.

OPENING, CLOSING = "<think>", "</think>"
_TAG = re.compile(f"({OPENING}|{CLOSING})")


class TagParts:
    def __init__(self) -> None:
        self.waiting = ""
        """The end of the text, which may be the beginning of a tag."""

    def feed(self, text: str) -> list[str]:
        """Texts and whole tags, in order."""
        text = self.waiting + text
        start = text.rfind("<")
        tail = text[start:] if start >= 0 else ""
        is_begun = any(tag.startswith(tail) and tag != tail for tag in (OPENING, CLOSING))
        self.waiting = tail if is_begun else ""
        return [part for part in _TAG.split(text.removesuffix(self.waiting)) if part]

    def finish(self) -> str:
        rest, self.waiting = self.waiting, ""
        return rest


type Span = tuple[bool, str]
"""Whether it is a thought, and its text."""


class ThoughtSpans:
    """The tags are kept among the thoughts for a view without colours, where they alone show that a block is closed."""

    def __init__(self, *, keep_tags: bool = False) -> None:
        self._keep_tags = keep_tags
        self._thinking = False
        self._parts = TagParts()

    def feed(self, text: str) -> Iterator[Span]:
        for part in self._parts.feed(text):
            if part not in (OPENING, CLOSING):
                yield self._thinking, part
                continue
            self._thinking = part == OPENING
            if self._keep_tags:
                yield True, part

    def finish(self) -> Iterator[Span]:
        if rest := self._parts.finish():
            yield self._thinking, rest


# What Dify's page gets during a run: text in events, with repaired think tags. Newer Dify (its own `think_tags.py`,
# September 2026) repairs tags and counts every tag, quoted ones too; an older one passes text on as it was said.

EVENT_CHARACTERS = 64


class NodeText:
    def __init__(self) -> None:
        self.repairs: list[str] = []
        """The kinds of message before which a thought was closed; the end of the text is not among them."""
        self.is_open = False
        """Whether a thought is open, or was when the text ended."""
        self._passed: list[str] = []
        self._parts = TagParts()

    @property
    def passed(self) -> str:
        """All text so far: what was passed on, and what still waits."""
        return "".join([*self._passed, self._parts.waiting])

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
        yield from self._pass_on(self._parts.finish())
        yield from self._pass_on(CLOSING if self.is_open else "")

    def _feed(self, text: str) -> Iterator[Message]:
        yield from self._pass_on("".join(map(self._repaired, self._parts.feed(text))))

    def _repaired(self, part: str) -> str:
        if part not in (OPENING, CLOSING):
            return part
        was_open, self.is_open = self.is_open, part == OPENING
        if not (was_open and self.is_open):
            return part
        self.repairs.append(f"another {OPENING}")
        return CLOSING + OPENING

    def _interrupt(self, by: str) -> Iterator[Message]:
        yield from self.finish()
        if self.is_open:
            self.repairs.append(by)
        self.is_open = False

    def _pass_on(self, text: str) -> Iterator[Message]:
        self._passed.append(text)
        for start in range(0, len(text), EVENT_CHARACTERS):
            yield Message("text", {"text": text[start : start + EVENT_CHARACTERS]})

"""Splits the text of an answer at its think tags, and repairs it as Dify does for its page."""

import re
from collections.abc import Iterator

from devhost.node.messages import Message, names_a_file

# Splits a streamed answer at its think tags, even if a tag is spread over several chunks.

OPENING = "<think>"
CLOSING = "</think>"
_TAG = re.compile(f"({OPENING}|{CLOSING})")


class TagParts:
    """Splits streamed text into think tags and the text between them."""

    def __init__(self) -> None:
        self.waiting = ""
        """The end of the text so far, if it may be the beginning of a tag."""

    def feed(self, text: str) -> list[str]:
        """Returns the complete tags and the text between them, in order."""
        text = self.waiting + text
        start = text.rfind("<")
        tail = ""
        if start >= 0:
            tail = text[start:]
        is_begun = any(tag.startswith(tail) and tag != tail for tag in (OPENING, CLOSING))
        if is_begun:
            self.waiting = tail
        else:
            self.waiting = ""
        return [part for part in _TAG.split(text.removesuffix(self.waiting)) if part]

    def finish(self) -> str:
        rest = self.waiting
        self.waiting = ""
        return rest


type Span = tuple[bool, str]
"""A piece of an answer: whether it is a thought, and its text."""


class ThoughtSpans:
    """Splits streamed text into thoughts and other text.

    `keep_tags` keeps the tags in the thoughts, for a view without colors, where only a tag shows that a thought ends.
    """

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


# Dify's page gets text in events during a run (docs/host-facts.md, "The repair of thoughts"). The node's repair
# recognizes a tag only if one message contains all of it, and it counts quoted tags, too. Versions of Dify without the
# repair pass text on unchanged. All versions pass a tag on unchanged if it is split between two messages.

_LINKED = {True: "File", False: "Link"}


class NodeText:
    """The text that the node passes on to the page, with Dify's repairs of thoughts."""

    def __init__(self) -> None:
        self.repairs: list[str] = []
        """The kinds of message before which the repair closed a thought. The end of the text is not listed."""
        self._thinks = False
        """Whether the repair considers a thought to be open."""
        self._has_thought = False
        """Whether the open thought contains more than whitespace."""
        self._passed: list[str] = []
        self._ended: bool | None = None
        """Whether a thought was open when the text ended."""

    @property
    def passed(self) -> str:
        """All text that has been passed on so far."""
        return "".join(self._passed)

    @property
    def is_open(self) -> bool:
        """Whether a thought is open on the page, now or when the text ended. The page reads the whole text."""
        if self._ended is not None:
            return self._ended
        tags = _TAG.findall(self.passed)
        return bool(tags) and tags[-1] == OPENING

    def read(self, message: Message) -> Iterator[Message]:
        match message.type:
            case "text":
                yield from self._pass_on(self._repaired(message.text))
            case "link":
                yield from self._interrupt("a link")
                yield from self._pass_on(self._repaired(f"{_LINKED[names_a_file(message)]}: {message.text}\n"))
            case "log":
                yield from self._interrupt("a log")
                yield message
            case _:
                yield message

    def finish(self) -> Iterator[Message]:
        self._ended = self.is_open
        yield from self._close()

    def _repaired(self, text: str) -> str:
        return "".join(map(self._with_repair, _TAG.split(text)))

    def _with_repair(self, part: str) -> str:
        """Returns a tag or a piece of text as the node passes it on."""
        if part not in (OPENING, CLOSING):
            self._has_thought |= self._thinks and bool(part.strip())
            return part
        was_open = self._thinks
        had_thought = self._has_thought
        self._thinks = part == OPENING
        self._has_thought = False
        if not (was_open and self._thinks):
            return part
        if not had_thought:
            return ""
        self.repairs.append(f"another {OPENING}")
        return CLOSING + OPENING

    def _interrupt(self, by: str) -> Iterator[Message]:
        if self._thinks:
            self.repairs.append(by)
        yield from self._close()

    def _close(self) -> Iterator[Message]:
        if self._thinks:
            yield from self._pass_on(CLOSING)
        self._thinks = False
        self._has_thought = False

    def _pass_on(self, text: str) -> Iterator[Message]:
        if text:
            self._passed.append(text)
            yield Message("text", {"text": text})

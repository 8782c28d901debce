"""The tags of thoughts, and how an answer quotes them.

A tag is ``<think>`` or ``</think>`` in any letter case, with white space or attributes. Dify's page takes every such
tag for a thought's, in code too, and newer hosts close what it seems to open (docs/host-facts.md, "Thinking tags"). A
quoted tag is therefore written with a word joiner after its ``<``: invisible, but not a tag any more.

Which names a tag may have is said three times: models write thoughts in tags of their own, we write them in ours, and
only what Dify's page reads is quoted. An earlier answer of the history is what we wrote.
"""

import re
from dataclasses import dataclass
from functools import cached_property

WORD_JOINER = "\u2060"
MAX_ATTRIBUTES_LENGTH = 100
"""Characters between a tag's name and its ``>``; anything longer is text."""
_ATTRIBUTES = rf"(?:\s[^<>]{{0,{MAX_ATTRIBUTES_LENGTH}}})?"


def _beginning(word: str, then: str = "") -> str:
    """A pattern of every beginning of a word, also of none of it; ``then`` may follow the whole word."""
    pattern = then
    for letter in reversed(word):
        pattern = f"(?:{re.escape(letter)}{pattern})?"
    return pattern


@dataclass(frozen=True)
class Tags:
    """The opening and closing tags of these names."""

    names: tuple[str, ...]

    @property
    def pattern(self) -> str:
        """A whole tag, to be matched in any letter case. ``<think/>`` opens nothing."""
        return rf"</?(?:{'|'.join(map(re.escape, self.names))}){_ATTRIBUTES}(?<!/)>"

    @cached_property
    def _any(self) -> re.Pattern[str]:
        return re.compile(self.pattern, re.IGNORECASE)

    @cached_property
    def _beginnings(self) -> re.Pattern[str]:
        names = "|".join(_beginning(name, _ATTRIBUTES) for name in self.names)
        return re.compile(rf"</?(?:{names})\Z", re.IGNORECASE)

    def are_in(self, text: str) -> bool:
        return self._any.search(text) is not None

    def beginning_at_end(self, text: str) -> int:
        """How many characters at the end of a text may be the beginning of a tag; bounded by the longest tag."""
        return _length_at_end(self._beginnings, text)


OF_MODELS = Tags(("think",))
"""Those in which models write their thoughts."""
_OUR_NAME = "think"
OPEN, CLOSE = f"<{_OUR_NAME}>", f"</{_OUR_NAME}>"
OURS = Tags((_OUR_NAME,))
"""Those around the thoughts that we write, and so around those of an earlier answer."""
_NAME_ON_THE_PAGE = "think"
"""Of the tags that Dify's page reads."""

_NAME = rf"/?{_NAME_ON_THE_PAGE}(?![\w-])"
_NAMED = re.compile(rf"<(?={_NAME})", re.IGNORECASE)
_NAME_BEGINNING = re.compile(rf"</?{_beginning(_NAME_ON_THE_PAGE)}\Z", re.IGNORECASE)
_QUOTED = re.compile(rf"<{WORD_JOINER}(?={_NAME})", re.IGNORECASE)


def unquoted(text: str) -> str:
    """A text with its quoted tags as they were before QuotedTags wrote them."""
    return _QUOTED.sub("<", text)


class QuotedTags:
    """Writes a text that comes in pieces so that no tag is left in it.

    The joiner goes in wherever a tag's name begins, whatever follows the name: hosts differ in what they take for
    attributes. At most eight characters wait for the next piece.
    """

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str) -> str:
        text = self._held + text
        certain = len(text) - _length_at_end(_NAME_BEGINNING, text)
        self._held = text[certain:]
        return _quoted(text[:certain])

    def finish(self) -> str:
        """The rest; what is fed afterwards begins a new text."""
        rest, self._held = self._held, ""
        return _quoted(rest)


def _quoted(text: str) -> str:
    return _NAMED.sub(f"<{WORD_JOINER}", text)


def _length_at_end(beginning: re.Pattern[str], text: str) -> int:
    start = text.rfind("<")
    return len(text) - start if start >= 0 and beginning.match(text, start) else 0

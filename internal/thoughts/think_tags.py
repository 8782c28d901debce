"""The tags of thoughts, and how an answer quotes them.

A tag is ``<think>`` or ``</think>`` in any letter case, with white space or attributes. Dify's page takes every such
tag for a thought's, in code too, and newer hosts close what it seems to open (docs/host-facts.md, "Thinking tags"). A
quoted tag is therefore written with a word joiner after its ``<``: invisible, but not a tag any more.
"""

import re

OPEN, CLOSE = "<think>", "</think>"
WORD_JOINER = "\u2060"
MAX_ATTRIBUTES_LENGTH = 100
"""Characters between a tag's name and its ``>``; anything longer is text."""

TAG = rf"</?think(?:\s[^<>]{{0,{MAX_ATTRIBUTES_LENGTH}}})?(?<!/)>"
"""A whole tag, to be matched in any letter case. ``<think/>`` opens nothing."""

_ANY_TAG = re.compile(TAG, re.IGNORECASE)
_TAG_BEGINNING = re.compile(
    rf"</?(?:t(?:h(?:i(?:n(?:k(?:\s[^<>]{{0,{MAX_ATTRIBUTES_LENGTH}}})?)?)?)?)?)?\Z", re.IGNORECASE
)
_NAME = r"/?think(?![\w-])"
_NAMED = re.compile(rf"<(?={_NAME})", re.IGNORECASE)
_NAME_BEGINNING = re.compile(r"</?(?:t(?:h(?:i(?:nk?)?)?)?)?\Z", re.IGNORECASE)
_QUOTED = re.compile(rf"<{WORD_JOINER}(?={_NAME})", re.IGNORECASE)


def has_tag(text: str) -> bool:
    return _ANY_TAG.search(text) is not None


def possible_tag(text: str) -> int:
    """How many characters at the end of a text may be the beginning of a tag; bounded by the longest tag."""
    return _length_at_end(_TAG_BEGINNING, text)


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

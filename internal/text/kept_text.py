"""Long text that is kept in part, and text cut to the size that a model reads.

In: text in pieces, any amount of it. Out: its beginning and its end within fixed limits, and how much is missing
between them. Redaction comes before any cut, since half a secret would not be recognised.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import StringIO

from prompt import template

MAX_KEPT_LENGTH = 2 * 1024 * 1024
"""Characters of one text: ten times what a model can be shown, so that more of a cut result can still be read."""
_TAIL = 512 * 1024
_MIN_KEPT = 200
"""Characters of each of several texts that are cut to fit together."""
_SEAM = 20_000
"""Characters that are dropped at each side of a gap, because half of a secret may be there."""


@dataclass(frozen=True)
class Excerpt:
    """A text that may have gaps."""

    text: str
    missing: int = 0
    """Characters that are not in ``text``."""


class KeptText:
    """The beginning and the end of a text that comes in pieces; of the middle, only the length is kept."""

    def __init__(self, longest: int = MAX_KEPT_LENGTH, tail: int = _TAIL) -> None:
        """Keep at most ``longest`` characters; of a longer text the end has at least ``tail``."""
        self.length = 0
        """Characters that have come."""
        self.last = ""
        """The last character that has come."""
        self.says_something = False
        """Whether anything but white space has come."""
        self.is_whole = True
        """Whether all of it is kept."""
        self._head, self._head_left = StringIO(), longest - 2 * tail
        self._tail, self._longest_tail = StringIO(), tail

    def add(self, text: str) -> None:
        if not text:
            return
        self.length += len(text)
        self.last = text[-1]
        self.says_something = self.says_something or not text.isspace()
        if self._head_left:
            self._head.write(text[: self._head_left])
            text, self._head_left = text[self._head_left :], max(0, self._head_left - len(text))
        if self._tail.tell() + len(text) > 2 * self._longest_tail:
            end = self._tail.getvalue() + text if len(text) < self._longest_tail else text
            self._tail, self.is_whole = StringIO(), False
            text = end[-self._longest_tail :]
        self._tail.write(text)

    def whole(self) -> str:
        """The text as it came, as far as it is kept."""
        return self._head.getvalue() + self._tail.getvalue()

    def excerpt(self, redact: Callable[[str], str]) -> Excerpt:
        """What is kept, redacted."""
        if self.is_whole:
            return Excerpt(redact(self.whole()))
        head, tail = self._head.getvalue(), self._tail.getvalue()[-self._longest_tail :]
        missing = self.length - len(head) - len(tail) + 2 * _SEAM
        gap = template.CHARACTERS_NOT_KEPT.format(count=missing)
        return Excerpt(f"{redact(head)[:-_SEAM]}{gap}{redact(tail)[_SEAM:]}", missing - len(gap))


def joined(parts: list[Excerpt]) -> Excerpt:
    """The parts that are not empty, with blank lines between them."""
    said = [part for part in parts if part.text.strip()]
    return Excerpt("\n\n".join(part.text for part in said), sum(part.missing for part in said))


def cut_to_size(
    text: str, limit: int, missing: int = 0, note: Callable[..., str] = template.CHARACTERS_LEFT_OUT.format
) -> str:
    """Keep head and tail of a long text within ``limit`` characters, with a note about what is left out in between.

    ``missing`` characters are not in the text any more, and count as left out. ``note`` is given ``count``, the number
    of characters left out, and ``offset``, where they begin.
    """
    if len(text) <= limit:
        return text
    kept = limit - len(note(count=len(text) + missing, offset=len(text)))
    head, tail = kept - kept // 3, kept // 3
    gap = note(count=len(text) + missing - kept, offset=head)
    return text[:head] + gap + text[len(text) - tail :]


def cut_evenly(texts: Sequence[str], most: float, weigh: Callable[[str], int]) -> list[str]:
    """Cut the heaviest texts to one common weight, so that all together weigh about ``most``; light ones stay whole."""
    weights = [weigh(text) for text in texts]
    left, share = most, most
    for number, weight in enumerate(sorted(weights)):
        share = left / (len(weights) - number)
        if weight > share:
            break
        left -= weight
    else:
        return list(texts)
    return [
        text if weight <= share else cut_to_size(text, max(_MIN_KEPT, int(len(text) * share / weight)))
        for text, weight in zip(texts, weights, strict=True)
    ]

"""Functions that make texts well-formed, keep parts of them, cut them to size, and parse pasted text."""

import ast
import contextlib
import json
import re
import warnings
from collections.abc import Callable, Sequence
from io import StringIO

from pydantic_core import to_json

from prompt import template

# All incoming and outgoing text is made well-formed (docs/architecture.md, "Where texts are cleaned"). A lone
# surrogate cannot be encoded as UTF-8, and even one in a message ends the whole invocation. PostgreSQL, where Dify
# keeps messages, variables and logs, refuses NUL (docs/host-facts.md, "NUL characters").

_BACKSLASH = r"\\"
_NUL = r"\u0000"
"""The escape of NUL in JSON."""


def wellformed(text: str) -> str:
    """Return the text with "?" for each lone surrogate and without NUL; the same object if nothing changes."""
    if has_lone_surrogate(text):
        text = text.encode(errors="replace").decode()
    return text.replace("\0", "")


def wellformed_json[T](value: T) -> T:
    """Return a JSON value with well-formed texts and names; the same object if nothing changes, else a copy."""
    with contextlib.suppress(ValueError):  # raised for a lone surrogate
        if _NUL.encode() not in to_json(value):
            return value
    copy: T = json.loads(without_escaped_nul(wellformed(json.dumps(value, ensure_ascii=False))))
    return copy


def without_escaped_nul(text: str) -> str:
    """Remove the escapes of NUL from a JSON text, even if it is invalid. Nothing else changes."""
    if _NUL not in text or "\0" in text:
        return text
    # An escaped backslash does not begin another escape, so an unused character replaces it temporarily.
    return text.replace(_BACKSLASH, "\0").replace(_NUL, "").replace("\0", _BACKSLASH)


def has_lone_surrogate(text: str) -> bool:
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


# Texts are redacted before they are cut, because half a secret would not be recognized.

MAX_KEPT_LENGTH = 2 * 1024 * 1024
"""Maximum characters of one kept text (docs/long-results.md): ten times what a prompt can show, so that a model can
read more later."""
_TAIL = 512 * 1024
_MIN_KEPT = 200
"""Minimum characters that are kept of each text if several texts are cut to fit together."""
_SEAM = 20_000
"""Number of characters that are dropped on each side of a gap, because half of a secret may be there."""
NOT_KEPT = re.compile(re.escape(template.CHARACTERS_NOT_KEPT).replace(re.escape("{count}"), r"(\d{1,18})"))
"""Pattern of the note that marks a gap."""


class Pieces:
    """A text that arrives in pieces. A list of small pieces would take ten times the memory of their text."""

    def __init__(self) -> None:
        self._text = StringIO()

    def append(self, piece: str) -> None:
        self._text.write(piece)

    def __bool__(self) -> bool:
        """Return whether any character has arrived."""
        return self._text.tell() > 0

    def __str__(self) -> str:
        return self._text.getvalue()

    def taken(self) -> str:
        """Return the text so far and start a new one."""
        text = self._text.getvalue()
        self._text = StringIO()
        return text


class KeptText:
    """The beginning and the end of a text that arrives in pieces. Only the length of the middle is kept."""

    def __init__(self, longest: int = MAX_KEPT_LENGTH, tail: int = _TAIL) -> None:
        """Keep at most ``longest`` characters, including at least ``tail`` characters from the end of a longer text."""
        self.length = 0
        self.last = ""
        self.says_something = False
        self.is_whole = True
        self._kept = StringIO()
        self._longest = longest
        self._head = longest - 2 * tail
        self._tail = tail

    def add(self, text: str) -> None:
        if not text:
            return
        self.length += len(text)
        self.last = text[-1]
        self.says_something = self.says_something or not text.isspace()
        self._kept.write(text)
        if self._kept.tell() > self._longest:
            kept = self.whole()
            self._kept = StringIO()
            self.is_whole = False
            self._kept.write(kept[: self._head] + kept[-self._tail :])

    def whole(self) -> str:
        """Return the kept text without redaction."""
        return self._kept.getvalue()

    def excerpt(self, redact: Callable[[str], str]) -> str:
        """Return the kept text, redacted, with a note instead of the missing middle."""
        kept = self.whole()
        if self.is_whole:
            return redact(kept)
        gap = template.CHARACTERS_NOT_KEPT.format(count=self.length - len(kept) + 2 * _SEAM)
        return f"{redact(kept[: self._head])[:-_SEAM]}{gap}{redact(kept[self._head :])[_SEAM:]}"


def joined(*parts: str) -> str:
    """Return the parts that are not empty, with blank lines between them."""
    return "\n\n".join(part for part in parts if part.strip())


MAX_NAMED = 20
"""Maximum number of names that a message lists."""


def listed(names: Sequence[str]) -> str:
    """Return the first names, separated by commas, with an ellipsis for the others; "" for none."""
    shown = list(names[:MAX_NAMED])
    if len(names) > MAX_NAMED:
        shown.append("…")
    return ", ".join(shown)


def cut_to_size(text: str, limit: int, note: Callable[..., str] = template.CHARACTERS_LEFT_OUT.format) -> str:
    """Shorten a long text to ``limit`` characters: its beginning, a note about the gap, and its end.

    ``note`` is called with ``count``, the number of omitted characters, and ``offset``, their position.
    """
    if len(text) <= limit:
        return text
    length = len(text) + sum(int(gap[1]) - len(gap[0]) for gap in NOT_KEPT.finditer(text))
    kept = limit - len(note(count=length, offset=len(text)))
    head = kept - kept // 3
    tail = kept // 3
    gap = note(count=length - kept, offset=head)
    return text[:head] + gap + text[len(text) - tail :]


def cut_evenly(texts: Sequence[str], most: float, weigh: Callable[[str], int]) -> list[str]:
    """Cut the heaviest texts to the same weight, so that all texts together weigh about ``most``."""
    weights = [weigh(text) for text in texts]
    left = most
    share = most
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


_MAX_REPR_LENGTH = 100_000
_BYTE_ORDER_MARK = re.compile(r"\A[\s\ufeff]*\ufeff")
_SELECTOR = re.compile(r"\s*[A-Za-z0-9_]{1,100}(?:\.[A-Za-z_][A-Za-z0-9_]{0,100}){1,10}\s*")


def read_pasted(text: str) -> str:
    """Repair a text that is intended as JSON. Any other text is returned unchanged.

    A byte order mark at the beginning is dropped. Python's repr of a list or object, which Dify inserts for a variable
    in a text field (docs/host-facts.md, "Values of parameters"), becomes JSON.
    """
    text = _BYTE_ORDER_MARK.sub("", text)
    if not text.lstrip().startswith(("[", "{")) or len(text) > _MAX_REPR_LENGTH:
        return text
    with contextlib.suppress(ValueError, RecursionError):
        json.loads(text)
        return text
    # Python's parser limits the nesting.
    with contextlib.suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        with warnings.catch_warnings(action="ignore"):  # Python prints warnings about unknown escapes to stderr
            value = ast.literal_eval(text.strip())
        is_repr = "".join(repr(value).split()) == "".join(text.split())  # an extra comma is a sign of invalid JSON
        if is_repr:
            return json.dumps(value, ensure_ascii=False, allow_nan=False)
    return text


def parse_pasted(text: str) -> object:
    """Parse a JSON text into a well-formed value. Raises ``ValueError``, or ``RecursionError`` for too deep nesting."""
    return wellformed_json(json.loads(text))


def looks_like_selector(text: object) -> bool:
    """Return whether a text is only a selector such as ``start.tools``. Dify leaves it for a missing variable."""
    return isinstance(text, str) and _SELECTOR.fullmatch(text) is not None


def missing_variable(selector: str) -> str:
    return f"{selector.strip()!r} looks like a variable that does not exist; choose the variable in the node again"

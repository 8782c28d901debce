"""Functions for texts: make them well-formed, keep a part, cut them to size, and read pasted text."""

import ast
import contextlib
import json
import re
import warnings
from collections.abc import Callable, Sequence
from io import StringIO

from pydantic_core import to_json

from prompt import template

# Text is made well-formed where it comes in and where it goes out (docs/architecture.md, "Where texts are cleaned").
# Half of a surrogate pair cannot be written as UTF-8, and one of them in a message ends the whole invocation.
# PostgreSQL, where Dify keeps messages, variables and logs, refuses NUL (docs/host-facts.md, "NUL characters").

_BACKSLASH = r"\\"
_NUL = r"\u0000"
"""NUL as JSON escapes it."""


def wellformed(text: str) -> str:
    """The text with "?" for each lone surrogate, and without NUL; the text itself where it has neither."""
    if has_lone_surrogate(text):
        text = text.encode(errors="replace").decode()
    return text.replace("\0", "")


def wellformed_json[T](value: T) -> T:
    """A JSON value with well-formed texts and names: the value itself where they are, else a copy."""
    with contextlib.suppress(ValueError):  # raised for a lone surrogate
        if _NUL.encode() not in to_json(value):
            return value
    copy: T = json.loads(without_escaped_nul(wellformed(json.dumps(value, ensure_ascii=False))))
    return copy


def without_escaped_nul(text: str) -> str:
    """The text of a JSON value, or of what should be one, without the escapes of NUL; nothing else changes."""
    if _NUL not in text or "\0" in text:
        return text
    # A backslash that is escaped itself begins no escape: a character that is not there replaces it meanwhile.
    return text.replace(_BACKSLASH, "\0").replace(_NUL, "").replace("\0", _BACKSLASH)


def has_lone_surrogate(text: str) -> bool:
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


# Redaction comes before any cut, since half a secret would not be recognised.

MAX_KEPT_LENGTH = 2 * 1024 * 1024
"""Characters of one text (docs/long-results.md): ten times what a model can be shown, so that more can be read."""
_TAIL = 512 * 1024
_MIN_KEPT = 200
"""Characters of each of several texts that are cut to fit together."""
_SEAM = 20_000
"""Characters that are dropped at each side of a gap, because half of a secret may be there."""
NOT_KEPT = re.compile(re.escape(template.CHARACTERS_NOT_KEPT).replace(re.escape("{count}"), r"(\d{1,18})"))
"""The note on a gap."""


class Pieces:
    """A text that comes in pieces. In a list, small pieces would take ten times the memory of their text."""

    def __init__(self) -> None:
        self._text = StringIO()

    def append(self, piece: str) -> None:
        self._text.write(piece)

    def __bool__(self) -> bool:
        """Whether any character has arrived."""
        return self._text.tell() > 0

    def __str__(self) -> str:
        return self._text.getvalue()

    def taken(self) -> str:
        """The text so far; what comes next is another text."""
        text = self._text.getvalue()
        self._text = StringIO()
        return text


class KeptText:
    """The beginning and the end of a text that comes in pieces; of the middle, only the length is kept."""

    def __init__(self, longest: int = MAX_KEPT_LENGTH, tail: int = _TAIL) -> None:
        """Keep at most ``longest`` characters. At least ``tail`` of them are the end of a longer text."""
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
        """The text as it came, as far as it is kept."""
        return self._kept.getvalue()

    def excerpt(self, redact: Callable[[str], str]) -> str:
        """What is kept, redacted; a note takes the place of the middle that is not."""
        kept = self.whole()
        if self.is_whole:
            return redact(kept)
        gap = template.CHARACTERS_NOT_KEPT.format(count=self.length - len(kept) + 2 * _SEAM)
        return f"{redact(kept[: self._head])[:-_SEAM]}{gap}{redact(kept[self._head :])[_SEAM:]}"


def joined(*parts: str) -> str:
    """The parts that say something, with blank lines between them."""
    return "\n\n".join(part for part in parts if part.strip())


def cut_to_size(text: str, limit: int, note: Callable[..., str] = template.CHARACTERS_LEFT_OUT.format) -> str:
    """Keep head and tail of a long text within ``limit`` characters, with a note about what is left out in between.

    ``note`` is given ``count``, the number of characters left out, and ``offset``, where they begin.
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
    """Cut the heaviest texts to one common weight, so that all together weigh about ``most``; light ones stay whole."""
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
    """The intended JSON of a text that may contain JSON; any other text as it is.

    A byte order mark before it is dropped. Python's repr of a list or object, which Dify writes for a variable in a
    text field (docs/host-facts.md, "Values of parameters"), becomes its JSON.
    """
    text = _BYTE_ORDER_MARK.sub("", text)
    if not text.lstrip().startswith(("[", "{")) or len(text) > _MAX_REPR_LENGTH:
        return text
    with contextlib.suppress(ValueError, RecursionError):
        json.loads(text)
        return text
    # Python's parser bounds the nesting.
    with contextlib.suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        with warnings.catch_warnings(action="ignore"):  # Python warns of odd escapes, on stderr
            value = ast.literal_eval(text.strip())
        is_repr = "".join(repr(value).split()) == "".join(text.split())  # a comma too many is that of broken JSON
        if is_repr:
            return json.dumps(value, ensure_ascii=False, allow_nan=False)
    return text


def parse_pasted(text: str) -> object:
    """The JSON value that a text says, well-formed; ``ValueError``, or ``RecursionError`` if nested too deeply."""
    return wellformed_json(json.loads(text))


def looks_like_selector(text: object) -> bool:
    """Whether a text is only a selector such as ``start.tools``, which Dify leaves for a variable that is missing."""
    return isinstance(text, str) and _SELECTOR.fullmatch(text) is not None


def missing_variable(selector: str) -> str:
    return f"{selector.strip()!r} looks like a variable that does not exist; choose the variable in the node again"

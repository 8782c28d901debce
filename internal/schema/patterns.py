"""Regular expressions of a schema, matched in bounded time.

In: a pattern, and texts that a model wrote. Out: whether they match. The engine works in linear time; a pattern with
look-around or backreferences, which that engine lacks, is matched with a backtracking limit. A match cannot be
interrupted and holds up every session of the process: where it could take more than about 0.05 s, it is left out, and
the text counts as one that matches.
"""

import re
import warnings
from dataclasses import dataclass, replace
from functools import lru_cache
from time import thread_time

from jsonschema_rs import FancyRegexOptions, RegexOptions, ValidationErrorKind, Validator, validator_for

from internal.schema.references import SchemaUnusable

MAX_PATTERN_LENGTH = 2_000
MAX_SECONDS = 0.05
"""Of the processor, for all matches of one check. Patterns that people write need a few microseconds each."""
MAX_SIZE = 500_000
_SIZES = (1_000, 5_000, 20_000, 100_000, MAX_SIZE)
"""Bytes of a compiled pattern. For each character, the worst known patterns took 0.25 ns for each byte of it."""
_MAX_WORK = 200_000_000
"""Bytes of a compiled pattern times characters of the text."""
_BACKTRACKING = FancyRegexOptions(backtrack_limit=10_000, size_limit=100_000)
_MAX_BACKTRACKING_LENGTH = 2_000
"""Characters: look-around may take the square of it."""
_NEVER = -1
_UNICODE = {r"\w": r"\p{L}\p{M}\p{N}\p{Pc}", r"\d": r"\p{Nd}"}


@dataclass(frozen=True)
class Pattern:
    """A compiled pattern."""

    validator: Validator
    max_length: int
    """Characters of the longest text that is matched."""
    size: int = 0
    """Bytes, at most; 0 when it is not matched in linear time."""
    in_unicode: "Pattern | None" = None
    """The same with the letters and digits of all scripts, where that makes a difference."""

    def matches(self, text: str) -> bool:
        """Whether the pattern matches somewhere in the text, or may do so, by either reading of its letters."""
        if self._matches(text):
            return True
        return self.in_unicode is not None and not text.isascii() and self.in_unicode.matches(text)

    def _matches(self, text: str) -> bool:
        if len(text) > self.max_length or self.validator.is_valid(text):
            return True
        given_up = (ValidationErrorKind.BacktrackLimitExceeded, ValidationErrorKind.RegexEngineFailure)
        return any(isinstance(error.kind, given_up) for error in self.validator.iter_errors(text))


_LEFT_OUT = Pattern(validator_for({}), _NEVER)


@lru_cache(maxsize=1_000)
def compiled(text: str) -> Pattern:
    r"""Compile a pattern.

    JSON Schema reads ``\w`` and ``\d`` as ASCII. Authors who test their patterns in Python mean the letters of all
    scripts, so a text may match by either reading.

    Raises:
        SchemaUnusable: it is too long, or not a regular expression.
    """
    if len(text) > MAX_PATTERN_LENGTH:
        raise SchemaUnusable(f"a pattern has more than {MAX_PATTERN_LENGTH:,} characters")
    pattern, unicode = _compiled(text), _in_unicode(text)
    if pattern is None and not _is_regular_expression(text):
        raise SchemaUnusable(f"the pattern {text[:100]!r} is not a regular expression")
    pattern = pattern or _LEFT_OUT
    return pattern if unicode == text else replace(pattern, in_unicode=_compiled(unicode) or _LEFT_OUT)


def _in_unicode(text: str) -> str:
    r"""The pattern with Unicode's letters for ``\w`` and its digits for ``\d``, within brackets and outside."""
    pieces, is_in_brackets = list[str](), False
    for piece in re.findall(r"\\.|.", text, re.DOTALL):
        letters = _UNICODE.get(piece, piece)
        is_in_brackets = piece != "]" if is_in_brackets else piece == "["
        pieces.append(letters if letters == piece or is_in_brackets else f"[{letters}]")
    return "".join(pieces)


def _compiled(text: str) -> Pattern | None:
    """The pattern in the engine that suits it; None when it is too large, or has a syntax that no engine knows."""
    engines: list[tuple[RegexOptions | FancyRegexOptions, int, int]] = [
        *((RegexOptions(size), _MAX_WORK // size, size) for size in _SIZES),
        (_BACKTRACKING, _MAX_BACKTRACKING_LENGTH, 0),
    ]
    for options, max_length, size in engines:
        try:
            return Pattern(validator_for({"pattern": text}, pattern_options=options), max_length, size)
        except ValueError:
            continue
    return None


def _is_regular_expression(text: str) -> bool:
    try:
        with warnings.catch_warnings(action="ignore"):
            re.compile(text)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


class Matching:
    """Matches the patterns of one schema, and leaves them out when one check has taken too long over them.

    A check is one call of the library that no other session interrupts, so that one value serves all sessions.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        """What the matches of the check have taken so far, of the processor."""

    def begin(self) -> None:
        """Begin another check."""
        self.seconds = 0.0

    def accepts(self, pattern: Pattern, text: str) -> bool:
        """Whether the text matches, as far as the check has time left to find out."""
        if self.seconds > MAX_SECONDS:
            return True
        began = thread_time()
        result = pattern.matches(text)
        self.seconds += thread_time() - began
        return result

    def keyword(self) -> type:
        """A class of which the library makes a value for each ``pattern`` in a schema."""
        matching = self

        class PatternKeyword:
            def __init__(self, _schema: object, text: str, _path: object) -> None:
                self._pattern = compiled(text)

            def validate(self, value: object) -> None:
                if isinstance(value, str) and not matching.accepts(self._pattern, value):
                    raise ValueError("it does not match")

        return PatternKeyword

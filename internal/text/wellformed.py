"""Text that survives the wire and can be stored.

A lone surrogate (half of a UTF-16 pair, as a cut JSON escape leaves it) cannot be written as UTF-8, and one of them in
a message ends the whole invocation: a question mark stands for it. NUL (U+0000) is taken out: PostgreSQL, where Dify
keeps messages, variables and logs, refuses it in text and in jsonb (PostgreSQL's manual, 8.3 and 8.14). It takes every
other character, and so does MySQL in utf8mb4.
"""

import contextlib
import json
import re
from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json, to_json

MAX_EXACT_INTEGER = 2**53
"""The host's daemon reads numbers as floats and rounds larger integers: docs/host-facts.md, "Numbers and keys"."""
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_LARGE_NUMBER = re.compile(r"\d{16}")
_BACKSLASH, _NUL = r"\\", r"\u0000"
"""As JSON writes them."""


def wellformed(text: str) -> str:
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode("utf-8")
    return text.replace("\0", "")


def wellformed_text_of_json(text: str) -> str:
    """The text of a JSON value, or of what should be one, without the escapes of NUL.

    Nothing else changes: what is not JSON does not become JSON by it.
    """
    if _NUL not in text or "\0" in text:
        return text
    # A backslash that is escaped itself begins no escape: a character that is not there stands for it meanwhile.
    return text.replace(_BACKSLASH, "\0").replace(_NUL, "").replace("\0", _BACKSLASH)


def has_lone_surrogate(text: str) -> bool:
    return not text.isascii() and bool(_LONE_SURROGATE.search(text))


def wellformed_json(value: Any) -> Any:  # noqa: ANN401 - JSON in, JSON out
    """A copy in which every text is well-formed and everything else as it was."""
    if isinstance(value, str):
        return wellformed(value)
    if isinstance(value, Mapping):
        return {wellformed_json(key): wellformed_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [wellformed_json(item) for item in value]
    return value


def plain_json(value: object) -> object:
    """A copy that every JSON writer and reader takes.

    Strings are well-formed, keys are strings, numbers that JSON lacks become null, integers above MAX_EXACT_INTEGER
    become strings, and anything else its text. Written out and read back rather than walked through: 2 MB of small
    values would hold up every session of the process.
    """
    if isinstance(value, str):
        return wellformed(value)
    if value is None or isinstance(value, bool):
        return value
    text = compact_json(value)
    if _LARGE_NUMBER.search(text) is None:
        with contextlib.suppress(ValueError):  # nested deeper than this reader goes
            return from_json(text)
    return json.loads(text, parse_int=_exact_or_text)


def compact_json(value: object) -> str:
    """The text of ``json_text`` for readers that are no people: without spaces, and several times as fast.

    Raises:
        RecursionError: it is nested too deeply.
    """
    try:
        return wellformed_text_of_json(to_json(value, inf_nan_mode="null", fallback=_nearest).decode())
    except ValueError:  # a lone surrogate, or nested deeper than this writer goes
        return json_text(value)


def _exact_or_text(digits: str) -> int | str:
    number = int(digits)
    return number if abs(number) <= MAX_EXACT_INTEGER else digits


def _nearest(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, set | frozenset) else str(value)


def _with_written_keys(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _with_written_keys(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_with_written_keys(item) for item in value]
    return value


def json_text(value: object) -> str:
    """The JSON text of a value; numbers that JSON lacks become null, large ones keep their digits.

    Raises:
        RecursionError: it is nested too deeply.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=_nearest)
    except (TypeError, ValueError):  # a key or number that JSON cannot write
        written = json.dumps(_with_written_keys(value), default=_nearest)
        text = json.dumps(json.loads(written, parse_constant=lambda _name: None), ensure_ascii=False)
    return wellformed_text_of_json(wellformed(text))

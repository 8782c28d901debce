"""Text that survives the wire.

A lone surrogate (half of a UTF-16 pair, as a cut JSON escape leaves it) cannot be written as UTF-8, and one of them in
a message ends the whole invocation. In: any text or JSON. Out: the same with each replaced by a question mark.
"""

import math
import re
from collections.abc import Mapping
from typing import Any

LARGEST_EXACT = 2**53
"""The host's daemon reads numbers as floats and rounds larger integers (dify-contract, Corrections)."""
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def wellformed(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


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

    Strings are well-formed, keys are strings, numbers that JSON lacks become null, integers beyond the 53 bits that the
    host's daemon keeps become strings (dify-contract §6), and anything else its text.
    """
    if isinstance(value, str):
        return wellformed(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) <= LARGEST_EXACT else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {wellformed(str(key)): plain_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain_json(item) for item in value]
    return wellformed(str(value))

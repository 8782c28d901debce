"""JSON that a person typed, and whether a value from YAML is JSON: for fields of a script that are sent unchanged."""

import json
import math
from typing import Any

from pydantic_core import PydanticCustomError

DEEPEST = 100
"""Levels."""
TOO_DEEP = f"it has more than {DEEPEST} levels"


def typed_json(text: str) -> Any:  # noqa: ANN401 - JSON
    """ValueError for what is not JSON, and for what is nested so deeply that no reader behind this one takes it."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    _refuse_depth(value, DEEPEST)
    return value


def _refuse_depth(value: object, left: int) -> None:
    if isinstance(value, dict | list):
        if not left:
            raise ValueError(TOO_DEEP)
        for part in value.values() if isinstance(value, dict) else value:
            _refuse_depth(part, left - 1)


def json_value(value: object) -> object:
    """YAML has dates, bytes, sets and mappings that contain themselves; JSON does not."""
    reason = _not_json(value, place="", around=())
    if reason:
        raise PydanticCustomError("no_json", "{reason}", {"reason": reason})
    return value


def _not_json(value: object, place: str, around: tuple[int, ...]) -> str | None:
    """A sentence about the first part of a value that is not JSON, or None; `around` has the ids of its containers."""
    where = f"{place.removeprefix('.')} " if place else ""
    if id(value) in around:
        return f"{where}holds itself, which JSON cannot say"
    around = (*around, id(value))
    match value:
        case None | bool() | int() | str():
            return None
        case float() if math.isfinite(value):
            return None
        case dict():
            for key in value:
                if not isinstance(key, str):
                    return f"{where}has the key {key}, which is not a text: put it in quotes"
            parts = ((f"{place}.{key}", part) for key, part in value.items())
        case list():
            parts = ((f"{place}[{index}]", part) for index, part in enumerate(value))
        case _:
            return f"{where}is {value} ({type(value).__name__}), which is not a JSON value: put a text in quotes"
    return next((reason for inner, part in parts if (reason := _not_json(part, inner, around))), None)

"""What a model sent for a tool → a value of the tool's input schema, or a RefusedError.

The sentence names every wrong field, so that the model can correct all of them in one turn. Characters
that no database stores are refused here too.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter, ValidationError

from .errors import RefusedError

MAX_FAULTS = 10
"""More of them would only fill the model's context."""


class Input(BaseModel):
    """What a model sends: every field is present, and what is optional is nullable."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True, allow_inf_nan=False)


def _day(value: object) -> object:
    """Pydantic would also take a number, as seconds since 1970, and a time at midnight."""
    with suppress(ValueError):
        if isinstance(value, str):
            return date.fromisoformat(value.strip())
    raise ValueError("should be an ISO 8601 date, such as 2030-04-01")


type Day = Annotated[date, BeforeValidator(_day)]


def parse[T](schema: type[T], tool: str, given: object) -> T:
    """`given`: JSON as text, or as a value. Raises RefusedError and nothing else."""
    try:
        value = json.loads(given) if isinstance(given, str) else given
    except ValueError as error:
        raise RefusedError(f"Invalid JSON for {tool}: {error}.") from None
    except RecursionError:
        raise RefusedError(f"Invalid JSON for {tool}: it is nested too deeply.") from None
    try:
        if place := next(_unstorable(value), ""):
            raise RefusedError(f"Invalid parameters for {tool}: {place}: contains a character that cannot be stored.")
        return TypeAdapter(schema).validate_python(value)
    except ValidationError as error:
        raise RefusedError(f"Invalid parameters for {tool}: {_faults(error)}.") from None
    except RecursionError:
        raise RefusedError(f"Invalid parameters for {tool}: they are nested too deeply.") from None


def _faults(error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    shown = [f"{_place(fault['loc'])}{fault['msg']}" for fault in faults[:MAX_FAULTS]]
    left = len(faults) - len(shown)
    return "; ".join([*shown, f"and {left} more"] if left else shown)


def _place(location: tuple[int | str, ...]) -> str:
    """`("items", 0, "unit")` → `items[1].unit: `; people and models count from one."""
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part + 1}]"
        elif path:
            path += f".{part}"
        else:
            path = part
    if path:
        return f"{path}: "
    return ""


def _unstorable(value: Any, place: str = "") -> Iterator[str]:  # noqa: ANN401 - JSON
    """Where a text holds NUL, which PostgreSQL refuses, or half a surrogate pair, which UTF-8 cannot express."""
    match value:
        case str():
            if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
                yield place or "the text"
        case dict():
            for key, each in value.items():
                yield from _unstorable(key, place)
                yield from _unstorable(each, f"{place}.{key}" if place else str(key))
        case list():
            for number, each in enumerate(value, start=1):
                yield from _unstorable(each, f"{place}[{number}]")

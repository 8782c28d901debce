"""Values that must not be shown: secret credentials, and secrets that `--set` fixes.

In: the values. Out: the same data with each of them replaced wherever it stands, also as a URL or JSON writes it.
A value of fewer than six characters is no secret: too much of what is harmless would look like it.
"""

import dataclasses
import json
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

SHORTEST = 6
MASK = "[secret]"


class Secrets:
    def __init__(self, values: Iterable[str] = ()) -> None:
        spellings = {
            spelling
            for value in values
            if len(value) >= SHORTEST
            for spelling in (value, quote(value, safe=""), json.dumps(value)[1:-1])
        }
        longest_first = sorted(spellings, key=len, reverse=True)
        self._pattern = re.compile("|".join(re.escape(spelling) for spelling in longest_first)) if spellings else None

    def masked[T](self, value: T) -> T:
        """A copy without secrets, of the same shape; the value itself where there is nothing to hide."""
        return value if self._pattern is None else _rewritten(value, self._pattern)


def _rewritten(value: Any, pattern: re.Pattern[str]) -> Any:  # noqa: ANN401 - data of any shape
    match value:
        case str():
            return pattern.sub(MASK, value)
        case dict():
            return {_rewritten(key, pattern): _rewritten(item, pattern) for key, item in value.items()}
        case list() | tuple():
            return type(value)([_rewritten(item, pattern) for item in value])
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            return dataclasses.replace(value, **{name: _rewritten(item, pattern) for name, item in fields.items()})
        case _:
            return value

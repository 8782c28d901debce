"""Values that must not be shown: secret credentials, and secrets that `--set` fixes.

In: the values. Out: the same data with each of them replaced everywhere, also as a URL, JSON or Python's
`repr` writes it, and as one of them writes what another has written.
A value of fewer than six characters is not replaced: too much harmless text would contain it.
"""

import dataclasses
import json
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from devhost.protocol.golang.values import well_formed

SHORTEST = 6
MASK = "[secret]"
BACKSLASHES = r"(?:\\|%(?:25)*5c){1,64}"
"""JSON within JSON doubles them each time; a bound keeps the search linear."""


class Secrets:
    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values = {form for value in values for form in (value, well_formed(value)) if value}
        secrets = {value for value in self._values if len(value) >= SHORTEST}
        longest_first = sorted(secrets, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(_spelled, longest_first))) if secrets else None

    def is_secret(self, value: object) -> bool:
        """Whether the whole value is a secret, however short."""
        return isinstance(value, str) and value in self._values

    def line_by_line(self) -> "Secrets":
        """These and, of those with several lines, each line: a text is printed line by line."""
        return Secrets([*self._values, *(line.strip() for value in self._values for line in value.splitlines())])

    def masked[T](self, value: T) -> T:
        """A copy of the same shape without secrets; the value itself if it contains none."""
        return value if self._pattern is None else _rewritten(value, self._pattern)


def _spelled(secret: str) -> str:
    """A pattern for all spellings; a run of backslashes is one of any length, as each layer of escapes adds more."""
    return "".join(map(_spelled_character, re.sub(r"\\+", r"\\", secret)))


def _spelled_character(character: str) -> str:
    """Which characters are left plain differs from one library to the next, so each is searched separately."""
    quoted = quote(character, safe="", errors="surrogatepass")
    if quoted == character:
        return re.escape(character)
    if character == "\\":
        return f"(?i:{BACKSLASHES}(?:u005c)?)"
    plain = {character, quoted, *(("+", "%2B") if character == " " else ())}
    escaped = {json.dumps(character)[1:-1], ascii(character)[1:-1], f"\\u{ord(character):04x}"}
    spellings = plain | escaped | {f"\\{text}" for text in plain}
    return f"(?i:{'|'.join(sorted(map(_deeper, spellings)))})"


def _deeper(spelling: str) -> str:
    """A pattern for it at any depth: backslashes escaped again, percent signs quoted again."""
    parts = re.split(r"\\+", spelling)
    return BACKSLASHES.join(re.escape(part).replace("%", "%(?:25)*") for part in parts)


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

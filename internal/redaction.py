"""Secrets leave the plugin nowhere but in the call they belong to.

In: the values that a run knows to be secret, and text or JSON on its way out. Out: the same with every secret replaced.
Whoever truncates does so afterwards: half a secret would not be recognised any more.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

REDACTED = "[redacted]"
SHORTEST_SECRET = 6
"""Characters. Shorter values would also stand in innocent words."""

LONGEST_ERROR = 20_000
"""Characters of an error that are looked through; the expressions below take their time on hostile text."""

_CAMEL_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SECRET_KEY = re.compile(
    r"(^|_)(api_?key|access_?key|private_?key|secret(_?key)?|client_?secret|password|passwd|passphrase|authorization"
    r"|credentials?|token|bearer|cookie)$"
)
# A cursor is called a token too, and without it a model could not turn the page.
_CURSOR_KEY = re.compile(r"(^|_)(page|next|prev|previous|continuation|cursor|sync)_?token$")

_SECRET_SHAPES = re.compile(
    r"\b(?:sk|rk|pk)-[\w-]{8,}"
    r"|\bgh[pousr]_\w{16,}"
    r"|\bxox[abprs]-[\w-]{8,}"
    r"|\bAIza[\w-]{20,}"
    r"|\bAKIA[0-9A-Z]{16}\b"
    r"|\beyJ[\w-]{5,1000}\.[\w-]{5,2000}\.[\w-]*"
)
_SECRET_AFTER = re.compile(
    r"(?P<name>\b(?:bearer|basic)\s+|(?:api[_-]?key|token|secret|password|authorization)[\"']?\s*[:=]\s*[\"']?"
    r"(?:(?:bearer|basic)\s+)?|://[^\s/:@]+:)(?P<value>[^\s\"'&,;}@]{6,})",
    re.IGNORECASE,
)


def looks_secret(key: str) -> bool:
    """Whether a value under this name should never be seen, judged by the name alone."""
    name = re.sub(r"\W+", "_", _CAMEL_BORDER.sub("_", key)).lower()
    return bool(_SECRET_KEY.search(name)) and not _CURSOR_KEY.search(name)


def secrets_in(value: object) -> Iterator[str]:
    """Every string below a key that looks like a secret's."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if looks_secret(str(key)):
                yield from _strings_in(item)
            else:
                yield from secrets_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from secrets_in(item)


def _strings_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, int) and not isinstance(value, bool):
        yield str(value)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _strings_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings_in(item)


def secrets_named_in(text: str) -> Iterator[str]:
    """What follows a secret's name in a text that is no JSON, such as ``"password": "…``."""
    return (found["value"] for found in _SECRET_AFTER.finditer(text[:LONGEST_ERROR]))


def scrub(text: str) -> str:
    """Replace what has the shape of a credential, for texts that others wrote (a provider's error message)."""
    text = _SECRET_SHAPES.sub(REDACTED, text)
    return _SECRET_AFTER.sub(lambda found: found["name"] + REDACTED, text)


@dataclass(frozen=True)
class Redactor:
    """Replaces the secrets that one run knows of."""

    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    _pattern: re.Pattern[str] | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        written = {form for secret in self.secrets for form in _written_forms(secret)}
        longest_first = sorted(written, key=lambda form: (-len(form), form))
        pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None
        object.__setattr__(self, "_pattern", pattern)

    @classmethod
    def of(cls, secrets: Iterable[str]) -> "Redactor":
        return cls(frozenset(secret for secret in secrets if len(secret) >= SHORTEST_SECRET))

    def knowing(self, secrets: Iterable[str]) -> "Redactor":
        """A redactor that replaces these as well."""
        return Redactor.of({*self.secrets, *secrets})

    def text(self, text: str) -> str:
        return self._pattern.sub(REDACTED, text) if self._pattern else text

    def error(self, text: str) -> str:
        """Text that others wrote: known secrets, and whatever has the shape of one; nobody reads more of it."""
        return scrub(self.text(text)[:LONGEST_ERROR])

    def json(self, value: object) -> object:
        """A copy of a JSON value: known secrets, and all strings under a key that looks like a secret's."""
        return _replace_strings(value, self.knowing(secrets_in(value)).text)


def _replace_strings(value: object, replace: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return replace(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return REDACTED if replace(str(value)) == REDACTED else value
    if isinstance(value, Mapping):
        return {replace(str(key)): _replace_strings(item, replace) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_strings(item, replace) for item in value]
    return value


def _written_forms(secret: str) -> Iterator[str]:
    """A secret as it may stand in a text: bare, inside JSON, inside a URL."""
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield quote(secret, safe="")

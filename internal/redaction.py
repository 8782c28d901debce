"""Secrets leave the plugin nowhere but in the call they belong to.

In: the values that a run knows to be secret, and text or JSON on its way out. Out: the same with every secret replaced.
Whoever truncates does so afterwards: half a secret would not be recognised any more.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from internal.secret_detection import LONGEST_ERROR, REDACTED, scrub, secrets_in
from internal.wellformed import wellformed

SHORTEST_SECRET = 6
"""Characters. Shorter values would also stand in innocent words."""


@dataclass(frozen=True)
class Redactor:
    """Replaces the secrets that one run knows of.

    A tool may name thousands of them, so they are looked up rather than tried one after another: a short expression
    finds where one could begin, and the characters there say which lengths are worth a look.
    """

    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    _forms: frozenset[str] = field(init=False, repr=False, compare=False)
    _lengths: Mapping[str, Sequence[int]] = field(init=False, repr=False, compare=False)
    """By the first characters of a form; the longest first."""
    _beginning: re.Pattern[str] | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        forms = frozenset(form for secret in self.secrets for form in _written_forms(secret))
        lengths: dict[str, set[int]] = {}
        for form in forms:
            lengths.setdefault(form[:SHORTEST_SECRET], set()).add(len(form))
        object.__setattr__(self, "_forms", forms)
        object.__setattr__(self, "_lengths", {head: sorted(each, reverse=True) for head, each in lengths.items()})
        object.__setattr__(self, "_beginning", _beginning_of(lengths))

    @classmethod
    def of(cls, secrets: Iterable[str]) -> "Redactor":
        return cls(_long_enough(secrets))

    def knowing(self, secrets: Iterable[str]) -> "Redactor":
        """A redactor that replaces these as well."""
        new = _long_enough(secrets) - self.secrets
        return Redactor(self.secrets | new) if new else self

    def text(self, text: str) -> str:
        if self._beginning is None:
            return text
        pieces, end = [], 0
        for found in self._beginning.finditer(text):
            start = found.start()
            if start >= end and (length := self._length_at(text, start)):
                pieces += [text[end:start], REDACTED]
                end = start + length
        return "".join([*pieces, text[end:]])

    def _length_at(self, text: str, start: int) -> int:
        """How long the longest secret is that stands there, 0 without any."""
        lengths = self._lengths.get(text[start : start + SHORTEST_SECRET], ())
        return next((length for length in lengths if text[start : start + length] in self._forms), 0)

    def error(self, text: str) -> str:
        """Text that others wrote: known secrets, and whatever has the shape of one; nobody reads more of it."""
        return scrub(self.text(text)[:LONGEST_ERROR])

    def json(self, value: object) -> object:
        """A copy of a JSON value: known secrets, and all strings under a key that looks like a secret's."""
        return _replace_strings(value, self.knowing(secrets_in(value)).text)


_PLAIN_WORD = re.compile(r"[^\W\d_]+")
MOST_KEPT_IN_MIND = 5_000
"""Secrets; a tool that names more with every call would have each of the next ones build a larger redactor."""


class KnownSecrets:
    """What a run knows to be secret; it learns with every call, since a secret may be said where nothing names it."""

    def __init__(self, redactor: Redactor) -> None:
        self.redactor = redactor

    def learn(self, secrets: Iterable[str]) -> Redactor:
        """A redactor of all that is known and of these; plain words are not kept in mind for what comes later."""
        named = _long_enough(secrets)
        kept = {secret for secret in named if not _PLAIN_WORD.fullmatch(secret)}
        if len(self.redactor.secrets | kept) <= MOST_KEPT_IN_MIND:
            self.redactor = self.redactor.knowing(kept)
        return self.redactor.knowing(named)


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


def _long_enough(secrets: Iterable[str]) -> frozenset[str]:
    return frozenset(secret for secret in secrets if len(secret) >= SHORTEST_SECRET)


def _beginning_of(heads: Iterable[str]) -> re.Pattern[str] | None:
    """An expression for where one of these could stand, of one size however many they are."""
    classes = [f"[{re.escape(''.join(set(characters)))}]" for characters in zip(*heads, strict=True)]
    return re.compile(f"{classes[0]}(?={''.join(classes[1:])})") if classes else None


def _written_forms(secret: str) -> Iterator[str]:
    """A secret as it may stand in a text: bare, quoted by Python, inside JSON, inside a URL."""
    yield secret
    yield wellformed(secret)
    yield repr(secret)[1:-1]
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield quote(wellformed(secret), safe="")

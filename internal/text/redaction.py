"""Known secrets leave the plugin only in the calls that they belong to.

In: the values that a run knows to be secret, and text or JSON. Out: the same with every secret replaced. Text is cut
after that and never before: half a secret would not be recognised.

Secrets are replaced where texts come in and where they go out, and nowhere between:

- in: ``node.secrets`` finds the node's secrets; ``node.params`` and ``node.model_selection`` (the history) replace them
  in what the node gives to the model, ``state.records`` in the state of an earlier run, ``results.output`` and
  ``results.failures`` in what tools say;
- out: ``render.outgoing`` replaces them in text, log, variables and errors, ``render.log_content`` in the log's
  previews, ``state.records`` in the state; all also replace what the model gave to a secret parameter of a tool. The
  model itself goes on reading it.
"""

import json
import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import quote, quote_plus

from pydantic_core import to_json

from internal.text.fairness import in_turns
from internal.text.secret_detection import REDACTED, without_shapes
from internal.text.wellformed import wellformed

MIN_SECRET_LENGTH = 6
"""Characters. Shorter values would also match inside ordinary words."""
MAX_FORM_LENGTH = 8_192
"""Characters that are compared at once; a longer secret is looked for in parts, each replaced by itself."""
MAX_ERROR_LENGTH = 20_000
"""Characters of an error that are read; the rest of it is dropped."""


@dataclass(frozen=True)
class Redactor:
    """Replaces known secrets, in time linear in the text.

    The number of secrets does not matter: a short expression finds where one could begin, and the characters there say
    which of them are worth a look.
    """

    _forms: frozenset[str] = field(default=frozenset(), repr=False)

    @classmethod
    def of(cls, secrets: Iterable[str]) -> "Redactor":
        return cls().knowing(secrets)

    def knowing(self, secrets: Iterable[str]) -> "Redactor":
        """A redactor that replaces these as well."""
        new = frozenset(form for secret in secrets for form in _written_forms(secret)) - self._forms
        return Redactor(self._forms | new) if new else self

    @cached_property
    def _lengths(self) -> Mapping[str, list[int]]:
        """How long the forms are that begin with the same characters; the longest first.

        A node may hold thousands of secrets that differ in their ends alone: lengths are few.
        """
        lengths: dict[str, set[int]] = {}
        for form in self._forms:
            lengths.setdefault(form[:MIN_SECRET_LENGTH], set()).add(len(form))
        return {head: sorted(each, reverse=True) for head, each in lengths.items()}

    @cached_property
    def _in_order(self) -> list[str]:
        return sorted(self._forms)

    @cached_property
    def _beginning(self) -> re.Pattern[str] | None:
        """Where a secret could stand: one class of characters for each of the first characters."""
        columns = zip(*self._lengths, strict=True)
        first, *others = [f"[{re.escape(''.join(set(characters)))}]" for characters in columns] or [""]
        return re.compile(f"{first}(?={''.join(others)})") if first else None

    @cached_property
    def _stubs(self) -> frozenset[str]:
        """Beginnings that are too short for ``_beginning``."""
        return frozenset(head[:length] for head in self._lengths for length in range(1, MIN_SECRET_LENGTH))

    def text(self, text: str) -> str:
        """The whole text, redacted."""
        return self._scan(text, is_whole=True)[0] if self._forms else text

    def split(self, text: str) -> tuple[str, str]:
        """What is certain of a text that goes on, redacted; and its end, if that may be the beginning of a secret.

        Put the end before the next piece. Whatever the pieces, their sum is what ``text`` makes of the whole.
        """
        return self._scan(text, is_whole=False)

    def head(self, text: str, length: int) -> str:
        """The beginning of a text, redacted, without half of a secret at its end."""
        return self.text(text) if len(text) <= length else self.split(text[:length])[0]

    def _scan(self, text: str, *, is_whole: bool) -> tuple[str, str]:
        if self._beginning is None:
            return text, ""
        pieces, end = list[str](), 0
        for found in in_turns(self._beginning.finditer(text)):
            start = found.start()
            if start < end:
                continue
            lengths = self._lengths.get(text[start : start + MIN_SECRET_LENGTH], ())
            if not is_whole and lengths and self._may_go_on(text, start, longest=lengths[0]):
                return "".join([*pieces, text[end:start]]), text[start:]
            length = next((length for length in lengths if text[start : start + length] in self._forms), 0)
            if length:
                pieces += [text[end:start], REDACTED]
                end = start + length
        tail = max(end, len(text) - MIN_SECRET_LENGTH + 1)
        rest = next((at for at in range(tail, len(text)) if text[at:] in self._stubs), len(text))
        rest = len(text) if is_whole else rest
        return "".join([*pieces, text[end:rest]]), text[rest:]

    def _may_go_on(self, text: str, start: int, longest: int) -> bool:
        """Whether the rest of a text is the beginning of a form that is longer."""
        if len(text) - start >= longest:
            return False
        rest = text[start:]
        after = bisect_right(self._in_order, rest)
        return after < len(self._in_order) and self._in_order[after].startswith(rest)

    def error(self, text: str) -> str:
        """The beginning of a text that others wrote, without known secrets and without the shapes of credentials."""
        return without_shapes(self.head(text, MAX_ERROR_LENGTH))

    def json(self, value: Any) -> Any:  # noqa: ANN401 - JSON in, JSON out
        """A JSON value of others: texts, names and numbers that are a secret are replaced."""
        return self._without_secrets(value, keep_names=False) if self.holds_secret(value) else value

    def values(self, value: Any) -> Any:  # noqa: ANN401 - as above
        """A JSON value of ours, whose names and numbers mean something: only its texts are redacted."""
        return self._without_secrets(value, keep_names=True) if self.holds_secret(value) else value

    def json_text(self, text: str) -> str:
        """The text of a JSON value of ours, or of what should be one, redacted; JSON stays JSON."""
        if self.text(text) == text:
            return text
        try:
            return json.dumps(self.values(json.loads(text)), ensure_ascii=False)
        except (ValueError, RecursionError):
            return self.text(text)

    def holds_secret(self, value: object) -> bool:
        """Whether the text of a JSON value contains a secret."""
        if not self._forms:
            return False
        try:
            text = to_json(value).decode()
        except ValueError:  # deeper than pydantic writes
            text = json.dumps(value, ensure_ascii=False)
        return self._in_json.text(text) != text

    @cached_property
    def _in_json(self) -> "Redactor":
        """Looks for the same secrets in the text of a JSON value."""
        forms = frozenset(json.dumps(form, ensure_ascii=False)[1:-1] for form in self._forms)
        return self if forms == self._forms else Redactor(forms)

    def _without_secrets(self, value: object, *, keep_names: bool) -> object:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, int) and not isinstance(value, bool) and not keep_names:
            return REDACTED if self.text(str(value)) == REDACTED else value
        if isinstance(value, dict):
            return {
                name if keep_names else self.text(name): self._without_secrets(item, keep_names=keep_names)
                for name, item in in_turns(value.items())
            }
        if isinstance(value, list | tuple):
            return [self._without_secrets(item, keep_names=keep_names) for item in in_turns(value)]
        return value


class KnownSecrets:
    """The secret values that one run knows; names do not count."""

    def __init__(self, node: Redactor) -> None:
        self.for_model = node
        """Replaces the secrets that the developer set in the node; for texts that come in."""
        self.for_people = node
        """Replaces those, and what the model gave to a secret parameter of a tool; for texts that go out."""

    def holds(self, value: object) -> bool:
        """Whether a JSON value contains a secret that people must not see."""
        return self.for_people.holds_secret(value)

    def learn(self, given: Iterable[str]) -> None:
        """Add what the model gave to a secret parameter; the model itself still reads it."""
        self.for_people = self.for_people.knowing(given)


def _written_forms(secret: str) -> Iterator[str]:
    """The forms of a secret in a text: bare, quoted by Python, in JSON (in JSON, or written by Go), in a URL."""
    plain = wellformed(secret)
    in_json = json.dumps(plain, ensure_ascii=False)[1:-1]
    forms = {secret, plain, plain.strip(), repr(secret)[1:-1], json.dumps(secret)[1:-1], in_json}
    forms |= {json.dumps(in_json, ensure_ascii=False)[1:-1], quote(plain, safe=""), quote_plus(plain)}
    forms.add(in_json.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))
    for form in forms:
        if len(secret) >= MIN_SECRET_LENGTH <= len(form) and not form.isspace():
            size = math.ceil(len(form) / math.ceil(len(form) / MAX_FORM_LENGTH))
            yield from (form[at : at + size] for at in range(0, len(form), size))

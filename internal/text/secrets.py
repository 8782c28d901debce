"""Recognizes secrets in texts by a value's name or form, and replaces known secrets everywhere."""

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property, lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any
from urllib.parse import quote, quote_plus

from gevent import get_hub

from internal.clock import in_turns
from internal.json_values import scalars
from internal.text.texts import wellformed

REDACTED = "[redacted]"

# A name proves nothing: ``page_token``, ``max_token`` and ``app_token`` are not secrets. Names count only in the log.

_CAMEL_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SECRET_KEY = re.compile(
    r"(^|_)((api|access|private)_?key|secret(_?key)?|client_?secret"
    r"|password|passwd|passphrase|authorization|credentials?|token|bearer|cookie)$"
)
# The position in a list is also called a token, and the log should show which page was requested.
_CURSOR_KEY = re.compile(r"(^|_)(page|next|prev|previous|continuation|cursor|sync)_?token$")

_SHAPES = re.compile(
    # A letter before the pattern may be the end of an escape, such as the ``\n`` of JSON in an error.
    r"(?:\b|(?<=\\[nrt]))(?:"
    r"(?:sk|rk|pk)-[\w-]{8,}"
    r"|(?:sk|rk|pk)_(?:live|test)_\w{8,}"
    r"|gh[pousr]_\w{16,}"
    r"|github_pat_\w{16,}"
    r"|hf_[A-Za-z0-9]{16,}"
    r"|xox[abprs]-[\w-]{8,}"
    r"|AIza[\w-]{20,}"
    r"|AKIA[0-9A-Z]{16}\b"
    r"|eyJ[\w-]{5,1000}\.[\w-]{5,2000}\.[\w-]*"
    r")|-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[^-]*"
    # A password in an address ends with an @. The number after the colon in `http://host:5001/` is a port.
    r"""|(?P<address>://[^\s/:@"'?#]{0,200}:)[^\s/"'?#]{1,500}(?=@)"""
    # The schemes of an Authorization header. Prose such as "basic authentication" has no digit and no inner capital.
    r"""|(?P<scheme>\b(?i:bearer|basic)\s+)(?=[^\s"'\\,;]{0,200}?(?:\d|[a-z][A-Z]))[^\s"'\\,;]{6,}"""
)

# Errors quote JSON within JSON, so a quotation mark may follow any number of backslashes.
_QUOTE = r"""\\*+["']?"""
_QUOTED = r"""\\*+["']"""
_IS = rf"\s*[:=]\s*{_QUOTE}"
_NAMES = r"(?:(?:api|access|private|secret){0}key|client{0}secret|(?:access|auth|refresh|session|bearer){0}token"
_NAMES += r"|password|passwd|passphrase|authorization)"
_REMARK = (
    r"(?:cannot|expected|expired|incorrect|invalid|missing|please|required|should|unexpected|unknown)(?:[\s.,;:!)]|$)"
)
_ASSIGNED = rf"{_NAMES.format('[_-]?')}{_QUOTE}{_IS}(?:(?:bearer|basic)\s+)?(?!{_REMARK})"
_VERBS = r"(?:\s+(?:given|is|provided|received|sent|supplied|used|value|was|you)){0,3}"
# Prose may follow, so only a text with a digit counts as a secret.
_IN_PROSE = rf"{_NAMES.format(r'[\s_-]')}{_VERBS}{_IS}(?=\S{{0,200}}\d)"
# These names often belong to other values, so they count only in quoted JSON.
_IN_JSON = rf"(?:token|credentials?){_QUOTED}\s*:\s*{_QUOTED}(?!{_REMARK})"
_COOKIE = r"""[^\s=;"'\\]{1,200}+=[^\s;"'\\]*+"""
_NAMED = re.compile(
    rf"""
    (?P<before>
        {_ASSIGNED}    # api_key=hunter2-hunter2    "password": "hunter2"    Authorization: Bearer hunter2
      | {_IN_PROSE}    # Incorrect API key provided: hunter2
      | [?&]key=       # http://host/?key=hunter2
      | {_IN_JSON}     # "token": "hunter2"
    )
    (?:
        (?<=["'])(?:[^"'\\]|\\++(?!["'])){{6,}}(?=\\*+["'])    # "correct horse battery"
      | (?:[^\s"'\\&,;}}@]|\\++(?!["'nrt])){{6,}}               # hunter2
    )
    | (?P<cookie> cookie{_QUOTE}{_IS} ) {_COOKIE}(?:;\s*+{_COOKIE})*+
    """,
    re.IGNORECASE | re.VERBOSE,
)
_WORDS = ("key", "secret", "token", "passw", "passphrase", "authorization", "credential", "cookie")
"""Every match of the pattern contains one of these words."""


@lru_cache(maxsize=1024)
def looks_secret(key: str) -> bool:
    """Return whether the name suggests that its value is a secret."""
    name = re.sub(r"\W+", "_", _CAMEL_BORDER.sub("_", key)).lower()
    return bool(_SECRET_KEY.search(name)) and not _CURSOR_KEY.search(name)


def texts_in(value: object) -> Iterator[str]:
    """Yield every text and number in a JSON value, numbers as text."""
    for scalar in scalars(value):
        if isinstance(scalar, str | int | float) and not isinstance(scalar, bool):
            yield str(scalar)


def without_named(text: str) -> str:
    """Return a text without values that are labeled as API key, password and so on, for providers' errors and the log.

    Texts for a model are not changed in this way, because the model could then not see what was wrong.
    """
    lowered = text.lower()
    for word in _WORDS:  # the pattern is slow, and few texts have any of its words
        if word in lowered:
            return _NAMED.sub(rf"\g<before>\g<cookie>{REDACTED}", text)
    return text


# Known secrets are replaced in all incoming and outgoing texts (docs/architecture.md, "Where texts are cleaned"). A
# text is cut only after that, because half a secret would not be recognized.

MIN_SECRET_LENGTH = 6
"""Minimum characters of a secret. Shorter values would also match inside ordinary words."""
MAX_ERROR_LENGTH = 20_000
"""Maximum characters of an error that are processed. The rest is dropped."""
BORDER = "\ud800"
"""A separator between two texts that may share a secret: a lone surrogate, which no text from Dify has."""
_LONG_PATTERN = 20_000
"""Minimum characters of a pattern that is compiled in a thread, because that takes 0.03 s or more."""
_NUMBER = re.compile(r"[-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,3})?")
_UNESCAPED = ("", "/", "!'()*", "/!'()*;,?:@&=+$#")
"""Characters that programs do not escape in a URL: Python's ``quote_plus``, its ``quote``, JavaScript's two
functions."""


@dataclass(frozen=True)
class Redactor:
    """Replaces known secrets in each of their written forms."""

    _forms: frozenset[str] = field(default=frozenset(), repr=False)

    @classmethod
    def of(cls, secrets: Iterable[str]) -> "Redactor":
        return cls().knowing(secrets)

    def knowing(self, secrets: Iterable[str]) -> "Redactor":
        """Return a redactor that also replaces these secrets."""
        new = frozenset(form for secret in in_turns(secrets) for form in _written_forms(secret)) - self._forms
        if new:
            return Redactor(self._forms | new)
        return self

    def __bool__(self) -> bool:
        """Return whether the redactor knows any secret."""
        return bool(self._forms)

    @cached_property
    def _in_order(self) -> list[str]:
        return sorted(self._forms)

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self._forms), default=1)

    @cached_property
    def _any(self) -> re.Pattern[str]:
        return self._pattern()

    def _pattern(self, between: str = "") -> re.Pattern[str]:
        """Return a pattern of all forms, longer ones first. ``between`` is a pattern that may occur inside them."""
        groups = (
            rf"{re.escape(first)}{between}(?:{'|'.join(between.join(map(re.escape, form[1:])) for form in same)})"
            for first, same in groupby(
                reversed(self._in_order), key=itemgetter(0)
            )  # the first character excludes most forms
        )
        written = "|".join(groups)
        # Compiling thousands of secrets takes 0.2 s. A thread does it, so that other sessions can run.
        if len(written) < _LONG_PATTERN:
            return re.compile(written)
        return get_hub().threadpool.apply(re.compile, (written,))

    def text(self, text: str) -> str:
        """Redact a complete text."""
        if self._forms:
            return self._any.sub(REDACTED, text)
        return text

    def texts(self, text: str, between: str) -> str:
        """Redact texts that are joined by ``BORDER``, even if a secret spans two texts.

        ``between`` replaces the borders.
        """
        redacted = self.text(text)
        without = redacted.replace(BORDER, "")
        if self.text(without) != without:
            redacted = self._pattern(f"{BORDER}?").sub(REDACTED, text)
        return redacted.replace(BORDER, between)

    def split(self, text: str) -> tuple[str, str]:
        """Return the settled part of a stream, redacted, and its end, which may be the beginning of a secret.

        The caller puts the end before the next piece. However a text is split, the joined results equal ``text`` of the
        complete text.
        """
        first = max(0, len(text) - self._longest + 1)
        settled = next((at for at in range(first, len(text)) if self._may_become(text[at:])), len(text))
        if settled < len(text):
            spans = (found.span() for found in self._any.finditer(text))
            settled = next((start for start, end in spans if start < settled < end), settled)
        return self.text(text[:settled]), text[settled:]

    def _may_become(self, rest: str) -> bool:
        """Return whether a longer secret begins with this text."""
        after = bisect_right(self._in_order, rest)
        return after < len(self._in_order) and self._in_order[after].startswith(rest)

    def head(self, text: str, length: int) -> str:
        """Return the redacted beginning of a text, without half of a secret at its end."""
        if len(text) <= length:
            return self.text(text)
        return self.split(text[:length])[0]

    def error(self, text: str) -> str:
        """Return the beginning of an external text, without known secrets and without anything like a credential."""
        return _SHAPES.sub(rf"\g<address>\g<scheme>{REDACTED}", self.head(text, MAX_ERROR_LENGTH))

    def json(self, value: Any) -> Any:  # noqa: ANN401 - the value and the result are JSON
        """Redact a JSON value from outside. Texts, names and numbers that are a secret are replaced."""
        if self._forms:
            return self._walked(value, is_ours=False)
        return value

    def values(self, value: Any) -> Any:  # noqa: ANN401 - as above
        """Redact the texts in a JSON value that the agent itself built.

        Names and numbers stay, because they have a meaning.
        """
        if self._forms:
            return self._walked(value, is_ours=True)
        return value

    def json_text(self, text: str) -> str:
        """Redact the text of a JSON value of the agent, even if it is invalid. Valid JSON stays valid."""
        if self.text(text) == text:
            return text
        try:
            return json.dumps(self.values(json.loads(text)), ensure_ascii=False)
        except (ValueError, RecursionError):
            return self.text(text)

    def _walked(self, value: object, *, is_ours: bool) -> object:
        match value:
            case str():
                return self.text(value)
            case int() | float() if not is_ours and not isinstance(value, bool):
                if self._is_number(value):
                    return REDACTED
                return value
            case dict():
                return self._named(value, is_ours=is_ours)
            case list() | tuple():
                return [self._walked(item, is_ours=is_ours) for item in in_turns(value)]
            case _:
                return value

    def _named(self, value: Mapping[str, object], *, is_ours: bool) -> dict[str, object]:
        """Redact an object. If redaction makes names equal, the later ones are numbered."""
        walked = dict[str, object]()
        for name, item in in_turns(value.items()):
            shown = name
            if not is_ours:
                shown = self.text(name)
            number = 1
            while shown != name and (shown in walked or shown in value):
                number += 1
                shown = f"{self.text(name)} {number}"
            walked[shown] = self._walked(item, is_ours=is_ours)
        return walked

    def _is_number(self, value: float) -> bool:
        """Return whether a number is a secret, regardless of trailing zeros in the secret."""
        if self.text(str(value)) == REDACTED:
            return True
        return bool(self._numbers) and Decimal(str(value)) in self._numbers

    @cached_property
    def _numbers(self) -> frozenset[Decimal]:
        return frozenset(Decimal(form) for form in self._forms if _NUMBER.fullmatch(form))


class KnownSecrets:
    """The secret values that a run knows. Names of values are not considered."""

    def __init__(self, node: Redactor) -> None:
        self.for_model = node
        """The redactor for incoming texts, which replaces the secrets that the developer set in the node."""
        self.for_people = node
        """The redactor for outgoing texts, which also replaces the model's values for secret parameters of tools."""

    def holds(self, value: object) -> bool:
        """Return whether a JSON value contains a secret that people must not see."""
        return bool(self.for_people.json(value) != value)

    def learn(self, given: Iterable[str]) -> None:
        """Add the values that the model gave to a secret parameter. The model itself still sees them."""
        self.for_people = self.for_people.knowing(given)


def _written_forms(secret: str) -> Iterator[str]:
    """Yield the forms of a secret in a text: plain, quoted by Python, in JSON, in JSON within JSON, in a URL."""
    if len(secret) < MIN_SECRET_LENGTH:
        return
    plain = wellformed(secret)
    forms = {secret, plain, plain.strip(), repr(secret)[1:-1]}
    for is_ascii in (True, False):
        in_json = json.dumps(secret if is_ascii else plain, ensure_ascii=is_ascii)[1:-1]
        by_go = in_json.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
        forms |= {in_json, by_go, in_json.replace("/", "\\/"), json.dumps(in_json, ensure_ascii=is_ascii)[1:-1]}
    for unescaped in _UNESCAPED:
        for form in (quote(plain, unescaped), quote_plus(plain, unescaped)):
            forms |= {form, re.sub("%..", lambda escape: escape[0].lower(), form)}
    yield from (form for form in forms if len(form) >= MIN_SECRET_LENGTH and not form.isspace())

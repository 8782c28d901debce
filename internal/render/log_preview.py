"""What the log shows of a value: its beginning, without secrets and without what stands under a secret's name.

In: texts and JSON of any size. Out: JSON of at most MAX_PREVIEW_LENGTH characters each. A name proves nothing, but
the log rather hides one value too many than one too few. Outside the log nothing is hidden for its name.
"""

import json
import re
from collections.abc import Mapping

from internal.host.wire import MAX_EXACT_INTEGER
from internal.text.redaction import Redactor
from internal.text.secret_detection import REDACTED, looks_secret

MAX_PREVIEW_LENGTH = 2_000
"""Characters of one value; Dify stores every log twice: docs/host-facts.md, "Log entries"."""
_MAX_LOOK_LENGTH = 10 * MAX_PREVIEW_LENGTH
"""Characters of a value that are looked at."""

# Within JSON in JSON, backslashes stand before a quote; the value's quote then looks like the name's.
_NAME = re.compile(r"""(?P<quote>\\{0,15}["'])(?P<name>[^"'\\\n]{1,100})(?P=quote)\s*:\s*""")
_ODD_NAME = re.compile(r"""(?P<quote>\\{0,15}["']|)(?<![\w.-])(?P<name>[\w.-]{1,100}+)(?P=quote)\s*[:=]\s*""")
_BARE_VALUE = re.compile(r"""[^\s,;&}\]"'\\]*""")
_SAYS_NOTHING = ("null", "true", "false", '""', "[]", "{}")


def preview(value: object, redactor: Redactor, *, with_unquoted_names: bool = False) -> object:
    """A value for the log: as it is if it is small, else the beginning of its text.

    ``with_unquoted_names`` is for a text that should have been JSON: a value behind a bare name is hidden too.
    """
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) <= MAX_PREVIEW_LENGTH and not isinstance(value, str):
        shown = _without_named(redactor.json(json.loads(text, parse_int=_exact)))
    else:
        head = redactor.head(text, _MAX_LOOK_LENGTH)
        shown = without_named_in(without_named_in(head, _ODD_NAME) if with_unquoted_names else head)
    written = shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)
    if len(written) <= MAX_PREVIEW_LENGTH and len(text) <= _MAX_LOOK_LENGTH:
        return shown
    return f"{written[:MAX_PREVIEW_LENGTH]}… ({len(text):,} characters)"


def _exact(digits: str) -> int | str:
    """An integer, as text where the host would round it."""
    number = int(digits)
    return number if abs(number) <= MAX_EXACT_INTEGER else digits


def _without_named(value: object) -> object:
    if isinstance(value, str):
        return without_named_in(value)
    if isinstance(value, Mapping):
        return {
            name: REDACTED
            if looks_secret(name) and not isinstance(item, bool) and item not in (None, "", [], {})
            else _without_named(item)
            for name, item in value.items()
        }
    return [_without_named(item) for item in value] if isinstance(value, list) else value


def without_named_in(text: str, name: re.Pattern[str] = _NAME) -> str:
    """A text in which JSON stands, whole or cut, without the values under secrets' names."""
    pieces, end = [], 0
    for found in name.finditer(text):
        if found.start() >= end and looks_secret(found["name"]):
            start = found.end()
            stop = _end_of_value(text, start)
            hides = stop > start and text[start:stop] not in _SAYS_NOTHING
            hidden = f"{found['quote']}{REDACTED}{found['quote']}"
            pieces += [text[end:start], hidden if hides else text[start:stop]]
            end = stop
    return "".join([*pieces, text[end:]])


def _end_of_value(text: str, start: int) -> int:
    """Where the value that begins there ends; the text's end when that cannot be told."""
    quote = re.compile(r"""\\{0,15}["']""").match(text, start)
    if quote:
        closing = re.compile(rf"(?<!\\){re.escape(quote[0])}").search(text, quote.end())
        return closing.end() if closing else len(text)
    if text.startswith(("{", "["), start):
        try:
            return json.JSONDecoder().raw_decode(text, start)[1]
        except (ValueError, RecursionError):
            return len(text)
    bare = _BARE_VALUE.match(text, start)
    return bare.end() if bare else start

"""What gives a secret away: the name of the value, or its shape.

In: JSON, and texts that others wrote. Out: the secrets in them, or the text without them. Rather too much than too
little, except where a model needs the value to go on, as with the cursor of a page.
"""

import re
from collections.abc import Iterator, Mapping

REDACTED = "[redacted]"
LONGEST_ERROR = 20_000
"""Characters of an error that are looked through; the expressions below take their time on hostile text."""

_CAMEL_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def _names(gap: str) -> str:
    """What secrets are called, with whatever may stand between two words of a name."""
    keys = rf"(?:api|access|private){gap}key|secret(?:{gap}key)?|client{gap}secret"
    return rf"(?:{keys}|password|passwd|passphrase|authorization|credentials?|token|bearer|cookie)"


_SECRET_KEY = re.compile(rf"(^|_){_names('_?')}$")
# A cursor is called a token too, and without it a model could not turn the page.
_CURSOR_KEY = re.compile(r"(^|_)(page|next|prev|previous|continuation|cursor|sync)_?token$")
_NAME_ANYWHERE = re.compile(_names(r"[\W_]*"), re.IGNORECASE)

# A letter before a shape may be the end of an escape, as in the ``\n`` of JSON within an error.
_SECRET_SHAPES = re.compile(
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
)

# Errors quote JSON within JSON, so any number of backslashes may stand before a quote.
_QUOTE = r"""\\*+["']?"""
_IS = rf"\s*[:=]\s*{_QUOTE}"
# What an error says of a secret, in the place where another shows it.
_REMARK = (
    r"(?:cannot|expected|expired|incorrect|invalid|missing|please|required|should|unexpected|unknown)(?:[\s.,;:!)]|$)"
)
_SECRET_AFTER = re.compile(
    r"(?P<name>\b(?:bearer|basic)\s+"
    rf"|{_names('[_-]?')}{_QUOTE}{_IS}(?:(?:bearer|basic)\s+)?(?!{_REMARK})"
    # Prose, such as "API key provided: ", may go on as prose: only what has a digit is taken for a secret.
    rf"|{_names(r'[\s_-]')}(?:\s+(?:given|is|provided|received|sent|supplied|used|value|was|you)){{0,3}}{_IS}"
    r"(?=\S{0,200}\d)"
    r"|[?&]key="
    r"|://[^\s/:@]+:)"
    r"""(?P<value>(?<=["'])(?:[^"'\\]|\\++(?!["'])){6,}(?=\\*+["'])"""
    r"""|(?:[^\s"'\\&,;}@]|\\++(?!["'nrt])){6,})""",
    re.IGNORECASE,
)
_COOKIES_AFTER = re.compile(
    rf"(?P<name>cookie{_QUOTE}{_IS})"
    r"""(?P<value>[^\s=;"'\\]+=[^\s;"'\\]*(?:;\s*[^\s=;"'\\]+=[^\s;"'\\]*)*)""",
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
    for pattern in (_COOKIES_AFTER, _SECRET_AFTER):
        for found in pattern.finditer(text[:LONGEST_ERROR]):
            yield found["value"]


def may_name_secret(text: str) -> bool:
    """Whether anything in a text could be a secret's name; rather once too often."""
    return bool(_NAME_ANYWHERE.search(text))


def scrub(text: str) -> str:
    """Replace what has the shape of a credential, for texts that others wrote (a provider's error message)."""
    text = _SECRET_SHAPES.sub(REDACTED, text)
    for pattern in (_COOKIES_AFTER, _SECRET_AFTER):
        text = pattern.sub(lambda found: found["name"] + REDACTED, text)
    return text

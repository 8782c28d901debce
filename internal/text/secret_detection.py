"""How secrets are recognised: by the name of the value, or by its shape.

In: names, and texts that others wrote. Out: whether a name is a secret's, and the text without what looks like one. A
name proves nothing (``page_token``, ``max_token`` and ``app_token`` are not secrets), so it counts only in the log.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

REDACTED = "[redacted]"

_CAMEL_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SECRET_KEY = re.compile(
    r"(^|_)((api|access|private)_?key|secret(_?key)?|client_?secret"
    r"|password|passwd|passphrase|authorization|credentials?|token|bearer|cookie)$"
)
# The position in a list is called a token too, and the log should show which page was asked for.
_CURSOR_KEY = re.compile(r"(^|_)(page|next|prev|previous|continuation|cursor|sync)_?token$")

# A letter before a shape may be the end of an escape, as in the ``\n`` of JSON within an error.
_SHAPES = re.compile(
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
# A password in an address ends with an @: what follows the colon of `http://host:5001/` is a port.
_IN_ADDRESS = re.compile(r"""(?P<before>://[^\s/:@"'?#]{0,200}:)[^\s/"'?#]{1,500}(?=@)""")
# The schemes of an Authorization header. Prose such as "basic authentication" has neither digit nor a capital inside.
_SCHEME = re.compile(r"""(?P<before>\b(?i:bearer|basic)\s+)(?=[^\s"'\\,;]{0,200}?(?:\d|[a-z][A-Z]))[^\s"'\\,;]{6,}""")

# Errors quote JSON within JSON, so any number of backslashes may stand before a quote.
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
# Prose may go on as prose: only what has a digit is taken for a secret.
_IN_PROSE = rf"{_NAMES.format(r'[\s_-]')}{_VERBS}{_IS}(?=\S{{0,200}}\d)"
# These names often belong to other values, so they count only in quoted JSON.
_IN_JSON = rf"(?:token|credentials?){_QUOTED}\s*:\s*{_QUOTED}(?!{_REMARK})"
_WITHIN_QUOTES = r"""(?<=["'])(?:[^"'\\]|\\++(?!["'])){6,}(?=\\*+["'])"""
_UNQUOTED = r"""(?:[^\s"'\\&,;}@]|\\++(?!["'nrt])){6,}"""
_AFTER_NAME = re.compile(
    rf"""
    (?P<before>
        {_ASSIGNED}    # api_key=hunter2-hunter2    "password": "hunter2"    Authorization: Bearer hunter2
      | {_IN_PROSE}    # Incorrect API key provided: hunter2
      | [?&]key=       # http://host/?key=hunter2
      | {_IN_JSON}     # "token": "hunter2"
    )
    (?:
        {_WITHIN_QUOTES}    # "correct horse battery"
      | {_UNQUOTED}         # hunter2
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)
_COOKIES = re.compile(
    rf"(?P<before>cookie{_QUOTE}{_IS})"
    r"""[^\s=;"'\\]+=[^\s;"'\\]*(?:;\s*[^\s=;"'\\]+=[^\s;"'\\]*)*""",
    re.IGNORECASE,
)


@lru_cache(maxsize=1024)
def looks_secret(key: str) -> bool:
    """Whether a value under this name may be a secret, judged by the name alone."""
    name = re.sub(r"\W+", "_", _CAMEL_BORDER.sub("_", key)).lower()
    return bool(_SECRET_KEY.search(name)) and not _CURSOR_KEY.search(name)


def texts_in(value: object) -> Iterator[str]:
    """Every text and number in a JSON value, numbers as text."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)
    elif isinstance(value, dict):
        for item in value.values():
            yield from texts_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts_in(item)


def without_shapes(text: str) -> str:
    """A text without what has the shape of a credential: known formats of keys, and passwords in addresses."""
    text = _SHAPES.sub(REDACTED, text)
    for pattern in (_SCHEME, _IN_ADDRESS):
        text = pattern.sub(rf"\g<before>{REDACTED}", text)
    return text


def without_named(text: str) -> str:
    """A text without the values that it names API key, password and so on; for errors of providers and the log.

    Not for what a model reads, which could no longer tell what was wrong.
    """
    for pattern in (_COOKIES, _AFTER_NAME):
        text = pattern.sub(rf"\g<before>{REDACTED}", text)
    return text

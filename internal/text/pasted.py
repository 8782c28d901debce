"""Texts that were pasted into the panel, or that Dify put there for a variable.

In: the text of a parameter. Out: the JSON that it means, as text, and whether it names a variable that does not exist.
"""

import ast
import json
import math
import re
import warnings

from internal.text.wellformed import wellformed_json

_MAX_REPR_LENGTH = 100_000
_MAX_REPR_DEPTH = 64
_BYTE_ORDER_MARK = re.compile(r"\A[\s\ufeff]*\ufeff")
_REPR_TOKEN = re.compile(
    r"""'(?:[^'\\]++|\\.)*+'|"(?:[^"\\]++|\\.)*+"|(?P<opens>[\[{])|(?P<closes>[\]}])"""
    r"""|,(?!\s*+[\]}])|[:\s]|True|False|None|-?\d++(?:\.\d++)?+(?:e[+-]?\d++)?+""",
    re.DOTALL,
)
"""What Python writes for lists and objects of JSON's types: no comma at the end, as in broken JSON, and no operators,
which nest without brackets."""
_SELECTOR = re.compile(r"\s*[A-Za-z0-9_]{1,100}(?:\.[A-Za-z_][A-Za-z0-9_]{0,100}){1,10}\s*")


def read_pasted(text: str) -> str:
    """The intended JSON of a text that may contain JSON.

    A byte order mark before it is dropped. Python's repr of a list or object, which Dify writes for a variable in a
    text field (docs/host-facts.md, "Values of parameters"), becomes its JSON. Any other text is returned as it is.
    """
    text = _BYTE_ORDER_MARK.sub("", text)
    if not text.lstrip().startswith(("[", "{")) or len(text) > _MAX_REPR_LENGTH:
        return text
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        value = _read_repr(text.strip())
        return text if value is None else json.dumps(value, ensure_ascii=False)
    return text


def parse_pasted(text: str) -> object:
    """The JSON value that a text says, well-formed: JSON can escape what a text must not hold.

    Raises:
        ValueError: it says none.
        RecursionError: it is nested too deeply.
    """
    return wellformed_json(json.loads(text))


def _read_repr(text: str) -> object:
    """The list or object of JSON's types whose repr the text is, else None."""
    if not _is_readable_repr(text):
        return None
    try:
        with warnings.catch_warnings(action="ignore"):  # Python warns of odd escapes, on stderr.
            value = ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if _is_json(value) else None


def _is_readable_repr(text: str) -> bool:
    """Whether a text has only the tokens of a repr, at most so many levels deep; scanned before Python parses it."""
    position = levels = 0
    while position < len(text):
        token = _REPR_TOKEN.match(text, position)
        if token is None:
            return False
        levels += (token["opens"] is not None) - (token["closes"] is not None)
        if levels > _MAX_REPR_DEPTH:
            return False
        position = token.end()
    return True


def _is_json(value: object) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_json(item) for key, item in value.items())
    if isinstance(value, list):
        return all(map(_is_json, value))
    return value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


def looks_like_selector(text: object) -> bool:
    """Whether a text is only the selector of a variable, such as ``start.tools``.

    Dify leaves a selector in place of a variable that does not exist.
    """
    return isinstance(text, str) and _SELECTOR.fullmatch(text) is not None


def missing_variable(selector: str) -> str:
    return f"{selector.strip()!r} looks like a variable that does not exist; choose the variable in the node again"

"""Wording that many commands and pages share: examples in a help text, counts and prices."""

import json
from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal
from difflib import get_close_matches

from devhost.errors import ParameterError, naming

UNWRAPPED = "\b\n"
"""A marker that keeps click from rewrapping the lines of a paragraph."""


def examples(*lines: str) -> str:
    """Format examples for the `epilog=` of a command."""
    return UNWRAPPED + "\n".join(("For example:", *(f"  {line}" for line in lines)))


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a count such as `1 case` or `26 cases`. `plural` is for a noun with an irregular plural."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def misspelt(name: object, known: Iterable[str]) -> str:
    """Return the name in quotes, and a similar known name: `'turn' (did you mean 'turns'?)`."""
    meant = get_close_matches(str(name), list(known), 1)
    if meant:
        return f"{name!r} (did you mean {meant[0]!r}?)"
    return repr(name)


def refuse_unknown(kind: str, name: str, names: Collection[str]) -> None:
    if name not in names:
        raise ParameterError(f"there is no {kind} {misspelt(name, names)}; {naming(names)}")


def in_a_line(value: object) -> str:
    """Format a value on one line: a text as it is, a mapping as `name: value, …`, and anything else as JSON."""
    match value:
        case str():
            return " ".join(value.split())
        case Mapping():
            said = ((name, in_a_line(each) if isinstance(each, str) else preview(each)) for name, each in value.items())
            return ", ".join(f"{name}: {words}" for name, words in said)
        case _:
            return preview(value)


def preview(value: object) -> str:
    """Format a value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False, default=str)


MOST_DIGITS = 40
"""The maximum number of digits of a price. A longer number is shown as it came: `1E+1000000` has a million digits."""


def price_text(price: object) -> str:
    """Format a price: `0E-7` as `0`, and `1.0E-6` as `0.000001`. A value that is not a finite number stays as it is."""
    try:
        number = Decimal(str(price)).normalize()
    except ArithmeticError:  # not a number, or out of range
        return str(price)
    if number.is_finite() and abs(number.adjusted()) < MOST_DIGITS:
        return f"{number:f}"
    return str(price)

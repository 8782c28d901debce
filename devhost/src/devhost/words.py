"""Words that many commands and pages share: examples in a help, counts, prices."""

import json
from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal
from difflib import get_close_matches

from devhost.errors import ParameterError, naming

UNWRAPPED = "\b\n"
"""With this, click leaves the lines of a paragraph as they are."""


def examples(*lines: str) -> str:
    """For `epilog=` of a command."""
    return UNWRAPPED + "\n".join(("For example:", *(f"  {line}" for line in lines)))


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 case`, `26 cases`. `plural`: of a noun that does not just get an s."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def misspelt(name: object, known: Iterable[str]) -> str:
    """The name in quotes, and the one that it may mean: `'turn' (did you mean 'turns'?)`."""
    meant = get_close_matches(str(name), list(known), 1)
    if meant:
        return f"{name!r} (did you mean {meant[0]!r}?)"
    return repr(name)


def refuse_unknown(kind: str, name: str, names: Collection[str]) -> None:
    if name not in names:
        raise ParameterError(f"there is no {kind} {misspelt(name, names)}; {naming(names)}")


def in_a_line(value: object) -> str:
    """A text as it is, values with their names as `name: value, …`, anything else as JSON; each on one line."""
    match value:
        case str():
            return " ".join(value.split())
        case Mapping():
            said = ((name, in_a_line(each) if isinstance(each, str) else preview(each)) for name, each in value.items())
            return ", ".join(f"{name}: {words}" for name, words in said)
        case _:
            return preview(value)


def preview(value: object) -> str:
    """JSON on one line."""
    return json.dumps(value, ensure_ascii=False, default=str)


MOST_DIGITS = 40
"""A number with more cannot be a price; it is shown as it came, because `1E+1000000` has a million digits."""


def price_text(price: object) -> str:
    """`0E-7` → `0`, `1.0E-6` → `0.000001`; what is not a finite number stays as it is."""
    try:
        number = Decimal(str(price)).normalize()
    except ArithmeticError:  # not a number, or one beyond every range
        return str(price)
    if number.is_finite() and abs(number.adjusted()) < MOST_DIGITS:
        return f"{number:f}"
    return str(price)

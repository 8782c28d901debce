"""A price as a person reads it: in plain digits, however the plugin or the provider wrote it."""

from decimal import Decimal

MOST_DIGITS = 40
"""A number with more cannot be a price; it is shown as it came, because `1E+1000000` has a million digits."""


def price_text(price: object) -> str:
    """`0E-7` → `0`, `1.0E-6` → `0.000001`; what is not a finite number stays as it is."""
    try:
        number = Decimal(str(price)).normalize()
    except ArithmeticError:  # not a number, or one beyond every range
        return str(price)
    return f"{number:f}" if number.is_finite() and abs(number.adjusted()) < MOST_DIGITS else str(price)

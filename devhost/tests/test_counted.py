"""A number and what it counts: one is in the singular."""

import pytest

from devhost.words import counted, price_text


@pytest.mark.parametrize(("number", "words"), [(0, "0 cases"), (1, "1 case"), (2, "2 cases"), (1200, "1,200 cases")])
def test_a_number_of_cases(number: int, words: str) -> None:
    assert counted(number, "case") == words


def test_prices_have_plain_digits() -> None:
    assert [price_text(price) for price in ("2E-7", 0.5, "0E-7", "dear", "1E+99")] == [
        *("0.0000002", "0.5", "0", "dear", "1E+99")
    ]

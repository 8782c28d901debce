"""No conversation of an attacker does what the user did not consent to.

A bounded number here, ten times as many in ``make properties``, and as many as one has time for with ``make fuzz``.
"""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.attack.conversations import Conversation
from tests.support.local_http import SignedFiles, served

pytestmark = pytest.mark.heavy

FOUND: list[int] = []
"""Seeds of conversations that once went wrong."""


@pytest.fixture(scope="module")
def files() -> Iterator[str]:
    with served(SignedFiles) as address:
        yield address


@given(st.integers(0, 2**32))
def test_nothing_is_done_without_consent_and_nothing_twice(files: str, seed: int) -> None:
    Conversation(seed, files).play()


@pytest.mark.parametrize("seed", FOUND)
def test_what_once_went_wrong_does_not(files: str, seed: int) -> None:
    Conversation(seed, files).play()


def test_the_attacks_are_real(files: str) -> None:
    """Many conversations let approved calls act, so that a judge who allowed nothing would notice."""
    played = [Conversation(seed, files) for seed in range(100)]
    for each in played:
        each.play()

    assert sum(each.done for each in played) > 10
    assert sum(each.handed_on for each in played) > 0

"""Secrets that stand in a trace in pieces, hidden again where the pieces are joined.

A secret that a model streams in several pieces is in none of them whole, so that the trace has the pieces; but the
run's outcome at the end of the trace has the whole text, with the secret replaced. In: joined texts, and the outcome.
Out: the same texts without what the outcome hides.
"""

import re
from collections.abc import Iterable, Iterator

from devhost.text.secrets import MASK, Secrets
from devhost.trace.lines import Outcome

LONGEST_SECRET = 10_000
"""Characters."""


def hidden[T](value: T, outcomes: Iterable[Outcome]) -> T:
    """A copy of the same shape."""
    masked = {text for outcome in outcomes for text in _texts(outcome.model_dump()) if MASK in text}
    whole = [text for text in _texts(value) if text]
    return Secrets({found for text in masked for found in _found(text, whole)}).masked(value)


def _found(masked: str, texts: Iterable[str]) -> Iterator[str]:
    """What stands in one of the texts where the masked one has a mask; a mask alone could stand for anything."""
    around = masked.split(MASK)
    if not any(part.strip() for part in around):
        return
    pattern = re.compile(f"(.{{1,{LONGEST_SECRET}}}?)".join(map(re.escape, around)), re.DOTALL)
    for text in texts:
        found = pattern.fullmatch(text.strip()) if MASK not in text else None
        yield from found.groups() if found else ()


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for item in value.values():
                yield from _texts(item)
        case list() | tuple():
            for item in value:
                yield from _texts(item)

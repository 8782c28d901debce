"""The answer in a schema, as the node's variable.

In: the answer that was handed over, and the schema's check. Out: a value that satisfies the schema as the host keeps
it, or null; and a sentence for the log where the host cannot keep it exactly. The text has the answer as it is.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from internal.host.wire import MAX_EXACT_INTEGER
from internal.schema.check import Check, Unchecked
from internal.text.notes import OurWords
from internal.text.secret_detection import texts_in

_MAX_CHECKS = 100
"""How often the answer is checked to find out where its schema takes text for a number."""

type _Place = tuple[str | int, ...]


@dataclass(frozen=True)
class StructuredOutput:
    """An answer that was to satisfy a schema."""

    answer: Mapping[str, Any] | None = None
    """As the model gave it; None when it gave none that satisfies the schema."""
    variable: Mapping[str, Any] | None = None
    """As the host can keep it."""
    note: OurWords | None = None

    @classmethod
    def of(cls, answer: Mapping[str, Any] | None, check: Check) -> "StructuredOutput":
        """The daemon reads numbers as floats: a large integer goes as text where the schema takes that."""
        places = [] if answer is None else list(_large_integers(answer, ()))
        if answer is None or not places:
            return cls(answer, answer)
        variable, rounded = _with_texts(answer, places, check)
        if any(abs(_at(variable, place)) > sys.float_info.max for place in rounded):
            return cls(answer, None, OurWords("structured_output is null: a number in it is too large for the host"))
        if not rounded:
            return cls(answer, variable)
        integers = "1 integer" if len(rounded) == 1 else f"{len(rounded)} integers"
        note = f"structured_output: the host rounds {integers} above 2^53; the answer's text is exact"
        return cls(answer, variable, OurWords(note))

    def texts(self) -> Iterator[str]:
        """The texts in the answer."""
        return texts_in(self.answer)


def _large_integers(value: object, place: _Place) -> Iterator[_Place]:
    if isinstance(value, int) and abs(value) > MAX_EXACT_INTEGER:
        yield place
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _large_integers(item, (*place, name))
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from _large_integers(item, (*place, position))


def _with_texts(
    answer: Mapping[str, Any], places: Iterable[_Place], check: Check
) -> tuple[Mapping[str, Any], list[_Place]]:
    """The answer with texts at the places where the schema takes them, and the places where it does not."""
    value: dict[str, Any] = json.loads(json.dumps(answer))
    alike: dict[_Place, list[_Place]] = {}
    for place in places:
        alike.setdefault(tuple("*" if isinstance(part, int) else part for part in place), []).append(place)
    waiting, rounded, checks = list(alike.values()), list[_Place](), 0
    while waiting:
        tried = waiting.pop()
        numbers = [_put(value, place, str(_at(value, place))) for place in tried]
        checks += 1
        if checks <= _MAX_CHECKS and _satisfies(check, value):
            continue
        for place, number in zip(tried, numbers, strict=True):
            _put(value, place, number)
        if len(tried) == 1 or checks >= _MAX_CHECKS:
            rounded += tried
        else:
            waiting += [tried[: len(tried) // 2], tried[len(tried) // 2 :]]
    return value, rounded


def _satisfies(check: Check, value: object) -> bool:
    try:
        return check.is_satisfied_by(value)
    except Unchecked:
        return False


def _at(value: Any, place: _Place) -> Any:  # noqa: ANN401 - JSON
    for part in place:
        value = value[part]
    return value


def _put(value: dict[str, Any], place: _Place, item: object) -> object:
    """Put an item in its place; returns what stood there."""
    *way, last = place
    holder = _at(value, tuple(way))
    before, holder[last] = holder[last], item
    return before

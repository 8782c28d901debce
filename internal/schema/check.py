"""A check of values against one schema, which takes only so many steps.

In: a validator, and values that a model wrote. Out: what speaks against them. Choices within choices double the steps
with every level of a value, and an array of a model's has as many steps as items.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from jsonschema import FormatChecker
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from referencing.exceptions import Unresolvable

from internal.text.fairness import give_way

MAX_STEPS = 100_000
"""Schemas applied to values in one check."""
_STEPS_PER_TURN = 2_000
"""About 20 ms; then other sessions have their turn."""


class Unchecked(Exception):  # noqa: N818 - says what happened
    """The check was given up: too many steps, a schema that leads nowhere or in a circle, numbers beyond counting."""


class Steps(FormatChecker):
    """Counts the steps of one check.

    It stands where the validator keeps the checker of formats, since that is handed on to every part of a check, and
    formats are not checked.
    """

    def __init__(self) -> None:
        super().__init__(formats=())
        self._left = MAX_STEPS

    def check(self, instance: object, format: str) -> None:  # noqa: A002 - the library's name
        """Formats say nothing about a value here."""

    def spend(self) -> None:
        """Count one step.

        Raises:
            Unchecked: it was one too many.
        """
        self._left -= 1
        if self._left < 0:
            raise Unchecked
        if self._left % _STEPS_PER_TURN == 0:
            give_way()


@dataclass(frozen=True)
class Check:
    """Tells what speaks against a value."""

    schema: Mapping[str, Any]
    validator: Validator
    more: Callable[[Any], Iterable[ValidationError]] = lambda _value: ()
    """What JSON Schema cannot say."""

    def __call__(self, value: object, steps: Steps | None = None) -> Iterator[ValidationError]:
        """What speaks against the value, one by one.

        Raises:
            Unchecked
        """
        try:
            yield from self._of(self.schema, steps or Steps()).iter_errors(value)
            yield from self.more(value)
        except (Unresolvable, RecursionError, ArithmeticError, AttributeError, TypeError):
            # The last two where a reference leads to what only looks like a schema.
            raise Unchecked from None

    def accepts(self, value: object, part: object, steps: Steps) -> bool:
        """Whether a value satisfies a part of the schema.

        Raises:
            Unchecked
        """
        try:
            return bool(self._of(part, steps).is_valid(value))
        except (Unresolvable, RecursionError, ArithmeticError, AttributeError, TypeError):
            raise Unchecked from None

    def _of(self, part: object, steps: Steps) -> Any:  # noqa: ANN401 - the class is made at run time
        return self.validator.evolve(schema=part, format_checker=steps)

    def stricter(self, more: Callable[[Any], Iterable[ValidationError]]) -> "Check":
        return replace(self, more=more)

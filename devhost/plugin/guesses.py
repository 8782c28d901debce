"""What Dify's cast makes of a value that does not fit its parameter, where it refuses nothing and says nothing.

In: declared parameters, and values before the cast, which the cast accepts. Out: a sentence for each guess. No sentence
quotes a text: it may be a secret.
"""

from collections.abc import Iterable, Iterator, Mapping

from devhost.plugin.casting import cast_value
from devhost.plugin.keys.parameters import Parameter
from devhost.text.switch import reads_as_switch


def guesses(declared: Iterable[Parameter], values: Mapping[str, object], of: str = "") -> Iterator[str]:
    """`of` stands before a parameter's name, such as `tool.`."""
    for parameter in declared:
        value = values.get(parameter.name)
        if value or value == 0:  # every other value becomes the default
            reason = _of_boolean(value) if parameter.type == "boolean" else _of_number(parameter, value)
            if reason:
                yield f"{of}{parameter.name} {reason}"


def _of_boolean(value: object) -> str | None:
    if isinstance(value, bool) or value in (0, 1) or (isinstance(value, str) and reads_as_switch(value)):
        return None
    return "is neither true nor false: Dify sends true"


def _of_number(parameter: Parameter, value: object) -> str | None:
    if parameter.type != "number":
        return None
    number = cast_value(parameter, value)
    if isinstance(number, bool):
        return f"is {str(number).lower()}, not a number: Dify sends it all the same"
    if not isinstance(number, int | float):
        return "is not a number: Dify sends null"
    low, high = parameter.min, parameter.max
    # NaN is in no range.
    fits = (low is None or number >= low) and (high is None or number <= high)
    return None if fits else f"is {number}, out of range ({range_text(parameter)}): Dify sends it unchecked"


def range_text(parameter: Parameter) -> str:
    """Empty without a range."""
    match parameter.min, parameter.max:
        case None, None:
            return ""
        case None, high:
            return f"at most {high}"
        case low, None:
            return f"at least {low}"
        case low, high:
            return f"from {low} to {high}"

"""Parses a model's tool calls: the arguments, values of a wrong type, and the name of the tool."""

import json
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from internal.clock import in_turns, let_others_through
from internal.text.texts import has_lone_surrogate, without_escaped_nul
from prompt import tool_errors

MAX_NESTING = 64
MAX_ARGUMENTS_LENGTH = 1_000_000
"""Maximum characters of a call's arguments. With longer arguments, later requests would not fit, and no model
writes that much."""
_MAX_QUOTE_LENGTH = 200
_MANY = 1_000
"""Number of items above which work on an array takes noticeable time."""
_LONG = 100_000
"""Number of characters above which a text takes noticeable time to parse."""
_HARMLESS = frozenset({int, bool, type(None)})
_ADVICE = {("Extra data", "{"): tool_errors.ONE_CALL_IN_A_TURN}
"""Advice by the error message of Python's parser and the character at the position of the error."""


class NoObjectError(ValueError):
    """Raised for a text that is not a JSON object. The message says why, where, and what to do."""


class UnwritableError(ValueError):
    """Raised for a parsed value that cannot be sent to a tool. The message says where it is."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.path: list[str] = []
        """The names and positions that lead to the value, from the inside out."""

    def __str__(self) -> str:
        where = "$" + "".join(reversed(self.path))
        return f"{self.args[0]} at {where[:_MAX_QUOTE_LENGTH]}"


@dataclass(frozen=True)
class ToolArgumentsParseResult:
    """The parsed arguments. If ``ok`` is false, ``args`` is {} and ``error`` is a sentence for the model."""

    ok: bool
    args: dict[str, Any] = field(default_factory=dict)
    error: str | None = None


def parse_tool_arguments(arguments: object) -> ToolArgumentsParseResult:
    """Parse a JSON object; "" means {}. Anything else results in an error with its position."""
    try:
        return ToolArgumentsParseResult(ok=True, args=parse_object(arguments))
    except (NoObjectError, UnwritableError) as problem:
        return ToolArgumentsParseResult(ok=False, error=tool_errors.PARSE_ERROR.format(problem=problem))


def parse_object(arguments: object, advice: str = f"; {tool_errors.SEND_ONE_OBJECT}") -> dict[str, Any]:
    """Parse the text of a JSON object. For any other text, the error ends with ``advice``.

    Raises ``NoObjectError``, or ``UnwritableError`` for an object that cannot be serialized as JSON again.
    """
    if not isinstance(arguments, str):
        raise NoObjectError(tool_errors.NOT_A_TEXT.format(kind=type(arguments).__name__))
    if arguments == "":
        return {}
    if len(arguments) > MAX_ARGUMENTS_LENGTH:
        raise NoObjectError(tool_errors.TOO_LONG.format(most=MAX_ARGUMENTS_LENGTH))
    if not arguments.strip():
        raise NoObjectError(tool_errors.ONLY_WHITE_SPACE)
    try:
        value = json.loads(arguments, parse_constant=refuse_constant)
    except json.JSONDecodeError as problem:
        near = f", near {arguments[max(0, problem.pos - 20) : problem.pos + 20]!r}"
        advice = _ADVICE.get((problem.msg, arguments[problem.pos : problem.pos + 1]), advice)
        said = problem.msg.removesuffix(" at")  # "Unterminated string starting at"
        text = tool_errors.NOT_JSON.format(problem=said, position=problem.pos, near=near, advice=advice)
        raise NoObjectError(text) from None
    except NotANumberError as constant:
        words = re.finditer(r'"(?:[^"\\]++|\\.)*+"|' + re.escape(str(constant)), arguments)
        where = next((word.start() for word in words if not word.group().startswith('"')), 0)
        raise NoObjectError(tool_errors.NOT_A_NUMBER.format(constant=constant, position=where)) from None
    except ValueError:
        most = sys.get_int_max_str_digits()
        raise NoObjectError(tool_errors.TOO_MANY_DIGITS.format(most=most)) from None
    except RecursionError:
        raise NoObjectError(tool_errors.TOO_DEEP.format(most=MAX_NESTING)) from None
    if not isinstance(value, dict):
        raise NoObjectError(tool_errors.NOT_AN_OBJECT.format(kind=json_type(value), advice=advice))
    refuse_unwritable(value)
    return value


def without_quote(error: str) -> str:
    """Return an error of ``parse_tool_arguments`` without its quotation, which may contain a part of a secret."""
    return re.sub(rf", near (['\"]).*\1(?=; {tool_errors.SEND_ONE_OBJECT})", "", error)


class NotANumberError(ValueError):
    """Raised for NaN or an infinity, which Python's parser accepts but JSON lacks. The message is its name."""


def refuse_constant(name: str) -> None:
    raise NotANumberError(name)


def _refuse_unwritable_scalar(value: object) -> None:
    if isinstance(value, str) and has_lone_surrogate(value):
        raise UnwritableError(tool_errors.HALF_A_PAIR_IN_TEXT)
    if isinstance(value, float) and not math.isfinite(value):
        raise UnwritableError(tool_errors.NUMBER_TOO_LARGE)


def refuse_unwritable(value: object, levels: int = MAX_NESTING) -> None:
    """Raise ``UnwritableError`` for lone surrogates, infinite numbers, and more nesting than ``levels``."""
    if not isinstance(value, dict | list):
        _refuse_unwritable_scalar(value)
        return
    if levels == 0:
        raise UnwritableError(tool_errors.TOO_DEEP.format(most=MAX_NESTING))
    if isinstance(value, list) and _HARMLESS.issuperset(map(type, value)):
        return  # Most long arrays are numbers.
    if isinstance(value, dict) and any(map(has_lone_surrogate, value)):
        raise UnwritableError(tool_errors.HALF_A_PAIR_IN_NAME)
    items: Iterable[tuple[object, object]] = enumerate(value)
    if isinstance(value, dict):
        items = value.items()
    if len(value) > _MANY:
        items = in_turns(items)
    for key, item in items:
        try:
            refuse_unwritable(item, levels - 1)
        except UnwritableError as problem:
            problem.path.append(f".{key}" if isinstance(value, dict) else f"[{key}]")
            raise


# Conversion of values whose type differs from the schema.

_SCALARS: Mapping[str, set[type]] = {"boolean": {bool}, "null": {type(None)}, "integer": {int}, "number": {int, float}}
_PYTHON_TYPES: Mapping[str, set[type]] = {**_SCALARS, "array": {list}, "object": {dict}}
NOTHING: Any = object()  # None is a value


def converted(value: object, kind: str, *, is_whole: bool) -> object:
    """Return the value converted to this JSON type, or NOTHING if that is impossible."""
    if isinstance(value, str):
        said = _said(value)
        if kind == "integer" and isinstance(said, float) and said.is_integer():
            said = int(said)
        if type(said) in _PYTHON_TYPES.get(kind, ()):
            return said
        return NOTHING
    is_number = type(value) in _PYTHON_TYPES["number"]
    if kind == "string" and (is_number or is_whole):
        return json.dumps(value, ensure_ascii=False)
    return NOTHING


def meant_option(value: object, options: Iterable[object]) -> object:
    """Return the option that the value means in another spelling: 2 for ``"2"``, ``"False"`` for false; or NOTHING."""
    for option in options:
        text, other = (option, value) if isinstance(option, str) else (value, option)
        if isinstance(text, str) and not isinstance(other, str):
            said = _said(text)
            if said == other and isinstance(said, bool) == isinstance(other, bool):
                return option
    return NOTHING


def _said(text: str) -> object:
    """Return the JSON value of a text such as "7", "True" or "[1]", or else NOTHING."""
    if text.strip().lower() in {"true", "false", "null"}:
        text = text.strip().lower()
    else:
        text = without_escaped_nul(text)
    try:
        value = json.loads(text, parse_constant=refuse_constant)
        if len(text) > _LONG:
            let_others_through()
        refuse_unwritable(value)
    except (ValueError, RecursionError):
        return NOTHING
    return value


def resolve_tool_instance[T](tool_instances: Mapping[str, T] | None, tool_name: str) -> T | None:
    return (tool_instances or {}).get(tool_name)


def unknown_tool_error(tool_name: str, names: Iterable[str], which: str = tool_errors.KNOWN_TOOLS) -> str:
    listed = ", ".join(names)
    known = tool_errors.NO_TOOLS
    if listed:
        known = which.format(names=listed)
    return tool_errors.UNKNOWN_TOOL.format(name=tool_name[:_MAX_QUOTE_LENGTH], known=known)


def json_type(value: object) -> str:
    """Return the value's JSON type with its article."""
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


_WITH_ARTICLE = {"null": "null", "array": "an array", "object": "an object", "integer": "an integer"}


def wrong_type_error(value: object, kinds: Sequence[str]) -> str:
    """Return the error about a value that has none of these JSON types (at least one): "must be a number, got null".

    An object or array that was sent as text gets advice, because a model may be unable to send anything but text
    (docs/model-facts.md, "Names and schemas that APIs refuse").
    """
    names = [_WITH_ARTICLE.get(kind, f"a {kind}") for kind in kinds]
    wanted = " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    advice = ""
    structures = [f"a JSON {kind}" for kind in kinds if kind in ("array", "object")]
    if structures and isinstance(value, str):
        advice = tool_errors.SEND_ITS_TEXT.format(kinds=", ".join(structures))
    return tool_errors.WRONG_TYPE.format(wanted=wanted, given=json_type(value), advice=advice)

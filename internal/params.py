"""The node's parameters, read in every shape that Dify sends.

In: the dict that the host gives to a strategy. Out: StrategyParams, frozen and complete. What was left alone in the
panel ('' / None / [] / [None] / a missing key) is the default; what cannot be meant is clamped and noted; only what
makes a run impossible raises InvalidParameters.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Self

from dify_plugin.file.file import File
from pydantic import (
    BaseModel,
    ConfigDict,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from internal.errors import InvalidParameters
from internal.model_selection import ModelSelection
from internal.wellformed import wellformed, wellformed_json

type Note = Callable[[str], None]


class Limits(NamedTuple):
    """The range of a whole number and what it is when nobody says."""

    least: int
    default: int
    most: int


MAXIMUM_ITERATIONS = Limits(1, 6, 100)
PARALLEL_TOOL_CALLS = Limits(1, 8, 16)
TOOL_RESULT_LIMIT = Limits(1_000, 20_000, 200_000)
MAXIMUM_SECONDS = Limits(30, 540, 3_600)

_TRUE_WORDS = frozenset({"true", "yes", "y", "1", "on"})
_FALSE_WORDS = frozenset({"false", "no", "n", "0", "off"})


class StrategyParams(BaseModel):
    """One run's parameters; a field per parameter of the strategies' YAML, under the same name."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True, hide_input_in_errors=True)

    model: ModelSelection
    tools: tuple[Mapping[str, Any], ...] = ()
    """Dify's tool dicts, unread: which of them can be used is for the toolbox to say."""
    instruction: str = ""
    query: str = ""
    context: Any = None
    """str, dict or list of either, as the knowledge node gives it."""
    files: tuple[File, ...] = ()
    allowed_tools: tuple[str, ...] = ()
    """Names or ``provider/name``; empty allows all."""
    maximum_iterations: int = MAXIMUM_ITERATIONS.default
    """Rounds in which tools may run."""
    emit_intermediate_thoughts: bool = False
    prompt_policy_overrides: str = ""
    parallel_tool_calls: int = PARALLEL_TOOL_CALLS.default
    """Tool calls of one run that are under way at once."""
    tool_result_limit: int = TOOL_RESULT_LIMIT.default
    """Characters of one tool result that reach the model."""
    maximum_seconds: int = MAXIMUM_SECONDS.default
    """Soft deadline of the run."""

    _notes: tuple[str, ...] = PrivateAttr(default=())

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about what was read differently from how it was written, for the log."""
        return self._notes

    @model_validator(mode="wrap")
    @classmethod
    def _read_leniently(cls, raw: object, build: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(raw, cls):
            return raw
        notes: list[str] = []
        params = build(_read_values(raw if isinstance(raw, Mapping) else {}, notes.append))
        params._notes = tuple(notes)  # noqa: SLF001 - our own, and not a field
        return params


def read_params(raw: Mapping[str, Any]) -> StrategyParams:
    """Read what the host sent.

    Raises:
        InvalidParameters: no usable model was chosen, or there is nothing to answer. Never quotes the value: tool dicts
            carry decrypted secrets.
    """
    try:
        params = StrategyParams.model_validate(raw)
    except ValidationError as problem:
        first = problem.errors(include_input=False, include_context=False, include_url=False)[0]
        where = "".join(f"parameter {str(part)!r}: " for part in first["loc"][:1])
        raise InvalidParameters(where + first["msg"].removeprefix("Value error, ")) from None
    if not params.query.strip() and not params.files:
        raise InvalidParameters(
            "parameter 'query': it is blank and there are no files; give the agent a question, e.g. {{#sys.query#}}"
        )
    return params


def _read_values(raw: Mapping[str, Any], note: Note) -> dict[str, object]:
    def number(name: str, limits: Limits) -> int:
        return _read_number(name, raw.get(name), limits, note)

    def string(name: str) -> str:
        return _read_string(raw.get(name))

    return {
        "model": ModelSelection.read(raw.get("model"), note),
        "tools": tuple(_read_items("tools", raw.get("tools"), _read_tool, note)),
        "instruction": string("instruction"),
        "query": string("query"),
        "context": raw.get("context"),
        "files": tuple(_read_items("files", raw.get("files"), _read_file, note)),
        "allowed_tools": tuple(_read_names(raw.get("allowed_tools"))),
        "maximum_iterations": number("maximum_iterations", MAXIMUM_ITERATIONS),
        "emit_intermediate_thoughts": _read_switch(
            "emit_intermediate_thoughts", raw.get("emit_intermediate_thoughts"), note
        ),
        "prompt_policy_overrides": string("prompt_policy_overrides"),
        "parallel_tool_calls": number("parallel_tool_calls", PARALLEL_TOOL_CALLS),
        "tool_result_limit": number("tool_result_limit", TOOL_RESULT_LIMIT),
        "maximum_seconds": number("maximum_seconds", MAXIMUM_SECONDS),
    }


def _was_left_alone(value: object) -> bool:
    return value is None or value in ("", [], [None], {})


def _read_string(value: object) -> str:
    if _was_left_alone(value):
        return ""
    if isinstance(value, Mapping | list | tuple):
        # Dify parses a template that happens to be JSON.
        return wellformed(json.dumps(value, ensure_ascii=False, default=str))
    return wellformed(str(value))


def _read_number(name: str, value: object, limits: Limits, note: Note) -> int:
    if _was_left_alone(value):
        return limits.default
    number = _as_number(value)
    if math.isnan(number):
        note(f"{name}: not a number; {limits.default} is used")
        return limits.default
    clamped = int(min(max(number, limits.least), limits.most))
    if not limits.least <= number <= limits.most:
        note(f"{name}: {number:g} is outside {limits.least} to {limits.most}; {clamped} is used")
    return clamped


def _as_number(value: object) -> float:
    """What a value says as a number; NaN when it says none, infinity when it says more than a float holds."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if isinstance(value, int) and value > 0 else -math.inf
    except ValueError:
        return math.nan


def _read_switch(name: str, value: object, note: Note) -> bool:
    if _was_left_alone(value):
        return False
    word = str(value).strip().lower()
    if word in _TRUE_WORDS:
        return True
    if word not in _FALSE_WORDS:
        note(f"{name}: neither true nor false; false is used")
    return False


def _read_names(value: object) -> Iterable[str]:
    entries = value if isinstance(value, list | tuple) else [value]
    for entry in entries:
        for name in _read_string(entry).replace("\n", ",").split(","):
            if name.strip():
                yield name.strip()


def _read_items[T](name: str, value: object, read: Callable[[object], T], note: Note) -> Iterable[T]:
    """Read a list item by item, so that a bad one costs only itself."""
    items = value if isinstance(value, list | tuple) else [value]
    for position, item in enumerate(items, start=1):
        if item is None or item == "":
            continue
        try:
            yield read(item)
        except (ValidationError, TypeError, ValueError):
            note(f"{name}: item {position} cannot be read and is left out")


def _read_tool(item: object) -> Mapping[str, Any]:
    if isinstance(item, BaseModel):
        return item.model_dump(mode="json")
    if isinstance(item, Mapping):
        return item
    raise TypeError


def _read_file(item: object) -> File:
    return File.model_validate(wellformed_json(item.model_dump() if isinstance(item, File) else item))

"""A node's usage from `execution_metadata`, as strict about types as graphon has been since 0.3.1.

In: the metadata of one JSON message. Out: all fields of LLMUsage, or `NodeFailedError` naming the field.
"""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation

from devhost.errors import NodeFailedError
from devhost.wire import JsonObject

TOKENS = ("prompt_tokens", "completion_tokens", "total_tokens")
PRICES = (
    "prompt_unit_price",
    "prompt_price_unit",
    "prompt_price",
    "completion_unit_price",
    "completion_price_unit",
    "completion_price",
    "total_price",
)
SECONDS = ("time_to_first_token", "time_to_generate")


def read_usage(metadata: Mapping[str, object]) -> JsonObject:
    tokens = {name: _integer(name, metadata.get(name, 0)) for name in TOKENS}
    if tokens["total_tokens"] == 0:
        tokens["total_tokens"] = tokens["prompt_tokens"] + tokens["completion_tokens"]
    return {
        **tokens,
        **{name: str(_decimal(name, metadata.get(name, 0))) for name in PRICES},
        "currency": str(metadata.get("currency", "USD")),
        "latency": _seconds("latency", metadata.get("latency", 0.0)),
        **{name: _optional_seconds(name, metadata.get(name)) for name in SECONDS},
    }


def _integer(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _strict(name, value, "an integer")
    return value


def _decimal(name: str, value: object) -> Decimal:
    try:
        return Decimal(str(value))
    except InvalidOperation as error:
        raise _strict(name, value, "a number") from error


def _seconds(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _strict(name, value, "a number, not a text")
    return value


def _optional_seconds(name: str, value: object) -> float | None:
    return None if value is None else _seconds(name, value)


def _strict(name: str, value: object, wanted: str) -> NodeFailedError:
    return NodeFailedError(
        "usage-types",
        f"execution_metadata.{name} is {value!r} but must be {wanted}; the node fails after its text has been streamed",
    )

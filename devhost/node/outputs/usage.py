"""A node's usage from `execution_metadata`, read by the rules of graphon 0.7, which have been strict since 0.3.1.

In: the metadata of one JSON message. Out: all fields of LLMUsage as the node stores them, or `NodeFailedError` that
names the fields, with the words that the node shows.
"""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation

from pydantic import BaseModel, ConfigDict, StrictFloat, StrictInt, ValidationError, field_validator

from devhost.errors import NodeFailedError
from devhost.protocol.wire import JsonObject
from devhost.text.price import MOST_DIGITS
from devhost.text.yaml_file import describe

WORKFLOW_TOTALS = ("total_tokens", "total_price", "currency")
"""The part of `execution_metadata` that Dify keeps beside the outputs, as it was sent."""
SECONDS = ("latency", "time_to_first_token", "time_to_generate")
TOKENS = ("prompt_tokens", "completion_tokens", "total_tokens")
_HELP = re.compile(r"(?<=https://errors\.pydantic\.dev/)[\d.]+(?=/)")
_DIFYS_PYDANTIC = "2.14"


class _Metadata(BaseModel):
    model_config = ConfigDict(title="_LLMUsageMetadataInput")

    prompt_tokens: StrictInt = 0
    completion_tokens: StrictInt = 0
    total_tokens: StrictInt = 0
    prompt_unit_price: Decimal = Decimal(0)
    completion_unit_price: Decimal = Decimal(0)
    total_price: Decimal = Decimal(0)
    currency: str = "USD"
    prompt_price_unit: Decimal = Decimal(0)
    completion_price_unit: Decimal = Decimal(0)
    prompt_price: Decimal = Decimal(0)
    completion_price: Decimal = Decimal(0)
    latency: StrictInt | StrictFloat = 0.0
    time_to_first_token: StrictInt | StrictFloat | None = None
    time_to_generate: StrictInt | StrictFloat | None = None

    @field_validator("currency", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> str:
        return str(value)


def read_usage(metadata: Mapping[str, object]) -> JsonObject:
    try:
        read = _Metadata.model_validate(dict(metadata))
    except ValidationError as error:
        raise NodeFailedError(
            "usage-types",
            f"execution_metadata: {describe(error)}; the node fails after its text has been streamed",
            shows=_HELP.sub(_DIFYS_PYDANTIC, str(error)),
        ) from error
    if read.total_tokens == 0 and (read.prompt_tokens > 0 or read.completion_tokens > 0):
        read.total_tokens = read.prompt_tokens + read.completion_tokens
    return _stored(read)


def no_usage() -> JsonObject:
    """The usage of a node that has read no JSON, or a list last: graphon writes its prices as 0.0."""
    prices = [name for name, field in _Metadata.model_fields.items() if field.annotation is Decimal]
    return _stored(_Metadata.model_validate(dict.fromkeys(prices, "0.0")))


def _stored(usage: _Metadata) -> JsonObject:
    """Prices as text, seconds as floats."""
    values = usage.model_dump()
    seconds = {name: None if values[name] is None else float(values[name]) for name in SECONDS}
    return {**{name: str(value) if isinstance(value, Decimal) else value for name, value in values.items()}, **seconds}


def spent(usages: Iterable[Mapping[str, object]]) -> JsonObject:
    """The sum of what the answers of models reported: tokens, price and seconds; the currency is the last one's."""
    reported = list(usages)
    counts = {name: sum(int(_number(usage.get(name))) for usage in reported) for name in TOKENS}
    currencies = [str(usage["currency"]) for usage in reported if usage.get("currency")]
    return {
        **counts,
        "total_price": str(sum((_number(usage.get("total_price")) for usage in reported), Decimal(0))),
        "currency": (currencies or ["USD"])[-1],
        "latency": round(float(sum(_number(usage.get("latency")) for usage in reported)), 3),
    }


def _number(value: object) -> Decimal:
    """0 for what is not a number; prices travel as texts."""
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return Decimal(0)
    return number if number.is_finite() and abs(number.adjusted()) < MOST_DIGITS else Decimal(0)

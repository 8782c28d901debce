"""A limit on the cost of one run's model calls. Dify has no such limit."""

import threading
from collections.abc import Iterator
from decimal import Decimal

from devhost.errors import ParameterError
from devhost.models.backend import ModelBackend, ModelCallError, ModelDescription, ModelRequest
from devhost.protocol.wire import JsonObject
from devhost.words import price_text


class SpentError(ModelCallError):
    """Raised when the price limit is reached. The model call does not start, and the run ends."""

    def __init__(self, message: str) -> None:
        super().__init__("InvokeBadRequestError", message)


class PriceLimit:
    """The thread-safe price limit for all model calls of one run."""

    def __init__(self, most: Decimal) -> None:
        self.spent = Decimal(0)
        self._most = most
        self._currency = ""
        self._counting = threading.Lock()

    def check(self) -> None:
        """Raises `SpentError` if the completed calls have cost the limit or more."""
        with self._counting:
            if self.spent >= self._most:
                raise SpentError(
                    f"the run has spent {price_text(self.spent)} {self._currency}, and its limit is "
                    f"{price_text(self._most)}: no further model call begins. --limit price=NUMBER, or limits: price "
                    "in the script, allows more"
                )

    def count(self, usage: JsonObject) -> None:
        with self._counting:
            self.spent += Decimal(str(usage.get("total_price") or 0))
            self._currency = str(usage.get("currency") or "")


class LimitedModel:
    """A model whose calls count toward a limit and start only while the limit is not reached."""

    def __init__(self, model: ModelBackend, limit: PriceLimit) -> None:
        """Raises `ParameterError` if the model's price is not known."""
        refuse_unpriced(model.description)
        self._model = model
        self._limit = limit

    @property
    def description(self) -> ModelDescription:
        return self._model.description

    def invoke(self, request: ModelRequest, /) -> Iterator[JsonObject]:
        self._limit.check()
        usage: JsonObject | None = None
        try:
            for chunk in self._model.invoke(request):
                usage = chunk["delta"].get("usage") or usage  # the last usage of a call counts
                yield chunk
        finally:
            if usage is not None:
                self._limit.count(usage)


def refuse_unpriced(description: ModelDescription) -> None:
    """Raises `ParameterError` for a model without a price, for which a price limit has no effect."""
    if description.has_price:
        return
    why = f"the price of {description.name} is not known"
    if description.scripted:
        why = f"the script of {description.name} has no turn with usage: {{total_price: …}}"
    raise ParameterError(f"limits: price needs a model with a price, but {why}")


def limited(model: ModelBackend, limit: PriceLimit | None) -> ModelBackend:
    if limit is None:
        return model
    return LimitedModel(model, limit)

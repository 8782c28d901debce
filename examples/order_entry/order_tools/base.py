"""The base of this plugin's tools: it parses what the model sent, and hands it to the tool with the service to call."""

from abc import abstractmethod
from functools import cached_property
from typing import ClassVar

from ordering.services import OrderError, OrderService, RunSteps, UnknownRequestError
from tool_layer.database import Database
from tool_layer.envelope import Envelope, JsonObject, Result, success
from tool_layer.errors import RefusedError
from tool_layer.parsing import Input, parse
from tool_layer.recorded_tool import RecordedTool

from . import results


class OrderTool[I: Input](RecordedTool):
    """A tool imports this module and not the class: the SDK takes every class of `Tool` in a tool's module for it."""

    takes: type[I]
    parameter: ClassVar[str | None] = None
    """Of an input that is an object in one parameter."""

    @cached_property
    def orders(self) -> OrderService:
        return OrderService.by_credentials(self.runtime.credentials)

    def database(self) -> Database:
        return self.orders.database

    @abstractmethod
    def result(self, asked: I, steps: RunSteps) -> Result:
        """Raises OrderError: the model reads its sentence as an error result."""

    def answer(self, given: JsonObject, conversation: str) -> Envelope[Result]:
        asked = parse(self.takes, self.name, given if self.parameter is None else given.get(self.parameter))
        if isinstance(asked, Envelope):
            return asked
        try:
            return success(self.result(asked, RunSteps(self.database(), self.name, conversation)))
        except UnknownRequestError as error:
            raise RefusedError(str(error)) from error
        except OrderError as error:
            raise RefusedError(results.refusal(error)) from error

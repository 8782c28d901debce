"""The base of this plugin's tools: it hands what the model sent to the tool, with the service to call."""

from abc import abstractmethod
from functools import cached_property

from ordering.services import OrderError, OrderService, RunSteps, UnknownRequestError
from tool_layer.database import Database
from tool_layer.envelope import Result
from tool_layer.errors import RefusedError
from tool_layer.parsing import Input
from tool_layer.recorded_tool import RecordedTool
from tool_layer.run_steps import Turn

from . import results


class OrderTool[I: Input](RecordedTool[I]):
    @cached_property
    def orders(self) -> OrderService:
        return OrderService.by_credentials(self.runtime.credentials)

    def database(self) -> Database:
        return self.orders.database

    @abstractmethod
    def done(self, asked: I, steps: RunSteps) -> Result:
        """Raises OrderError: the model reads its sentence as an error result."""

    def result(self, asked: I, turn: Turn) -> Result:
        try:
            return self.done(asked, RunSteps(self.database(), self.name, turn))
        except UnknownRequestError as error:
            raise RefusedError(str(error)) from error
        except OrderError as error:
            raise RefusedError(results.refusal(error)) from error

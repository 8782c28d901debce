"""The tool `request_order`.

In: a draft, and the text of it that a person approves. Out: a report of the order that was placed.
"""

from ordering import tool_base
from ordering.values.inputs import OrderToRequest
from ordering.values.results import OrderEntryResult
from tool_layer.envelope import Envelope, JsonObject, Result, success
from tool_layer.parsing import parse


class RequestOrderTool(tool_base.OrderTool):
    name = "request_order"

    def answer(self, given: JsonObject, _conversation: str) -> Envelope[OrderEntryResult] | Envelope[Result]:
        parsed = parse(OrderToRequest, self.name, given)
        if isinstance(parsed, Envelope):
            return parsed
        return success(self.application.placing.request(parsed))

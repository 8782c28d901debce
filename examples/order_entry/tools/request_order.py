"""The tool `request_order`: places a draft, given the text of it that a person approved."""

from order_tools import base, results
from order_tools.inputs import OrderToRequest
from ordering.services import RunSteps
from tool_layer.envelope import Result


class RequestOrderTool(base.OrderTool[OrderToRequest]):
    name = "request_order"
    takes = OrderToRequest

    def done(self, asked: OrderToRequest, steps: RunSteps) -> Result:
        return results.placed(self.orders.request(asked.order_request_id, asked.order, steps))

"""The tool `save_order_draft`: saves a whole draft."""

from order_tools import base, results
from order_tools.inputs import Draft
from ordering.services import RunSteps
from tool_layer.envelope import Result


class SaveOrderDraftTool(base.OrderTool[Draft]):
    name = "save_order_draft"
    takes = Draft
    parameter = "draft"

    def done(self, asked: Draft, _steps: RunSteps) -> Result:
        return results.saved(self.orders.save(asked.order, asked.status, asked.order_request_id))

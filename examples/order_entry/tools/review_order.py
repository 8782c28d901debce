"""The tool `review_order`: what the rules say of a draft, and the text with which it is placed."""

from order_tools import base, results
from order_tools.inputs import DraftToReview
from ordering.services import RunSteps
from tool_layer.envelope import Result


class ReviewOrderTool(base.OrderTool[DraftToReview]):
    name = "review_order"
    takes = DraftToReview

    def done(self, asked: DraftToReview, _steps: RunSteps) -> Result:
        return results.reviewed(self.orders.review(asked.order_request_id))

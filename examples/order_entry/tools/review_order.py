"""The tool `review_order`.

In: the id of a draft. Out: what the rules say of it, and the second reader if one has read it.
"""

from ordering import tool_base
from ordering.values.inputs import ReviewQuery
from ordering.values.results import ReviewerResult
from tool_layer.envelope import Envelope, JsonObject, Result, success
from tool_layer.parsing import parse


class ReviewOrderTool(tool_base.OrderTool):
    name = "review_order"

    def answer(self, given: JsonObject, _conversation: str) -> Envelope[ReviewerResult] | Envelope[Result]:
        parsed = parse(ReviewQuery, self.name, given)
        if isinstance(parsed, Envelope):
            return parsed
        return success(self.application.reviewing.review(parsed.order_request_id))

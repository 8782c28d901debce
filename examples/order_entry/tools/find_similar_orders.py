"""The tool `find_similar_orders`: order requests that a new one would duplicate, or all open ones of a customer."""

from order_tools import base, results
from order_tools.inputs import SimilarQuery
from ordering.services import RunSteps
from tool_layer.envelope import Result


class FindSimilarOrdersTool(base.OrderTool[SimilarQuery]):
    name = "find_similar_orders"
    takes = SimilarQuery

    def done(self, asked: SimilarQuery, _steps: RunSteps) -> Result:
        if not asked.names:
            return results.open_found(self.orders.open_of(asked.customer))
        return results.similar_found(self.orders.similar(asked.customer, asked.names))

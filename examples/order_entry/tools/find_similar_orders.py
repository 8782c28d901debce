"""The tool `find_similar_orders`: order requests that a new one would duplicate."""

from order_tools import base, results
from order_tools.inputs import SimilarQuery
from ordering.services import RunSteps
from tool_layer.envelope import Result


class FindSimilarOrdersTool(base.OrderTool[SimilarQuery]):
    name = "find_similar_orders"
    takes = SimilarQuery

    def done(self, asked: SimilarQuery, _steps: RunSteps) -> Result:
        return results.similar_found(self.orders.similar(asked.customer, asked.names))

"""The tool `find_similar_orders`.

In: a customer and items, as they are written. Out: order requests that a new one would duplicate.
"""

from ordering import tool_base
from ordering.values.inputs import SimilarQuery
from ordering.values.results import SalesResult
from tool_layer.envelope import Envelope, JsonObject, Result, success
from tool_layer.parsing import parse


class FindSimilarOrdersTool(tool_base.OrderTool):
    name = "find_similar_orders"

    def answer(self, given: JsonObject, _conversation: str) -> Envelope[SalesResult] | Envelope[Result]:
        parsed = parse(SimilarQuery, self.name, given)
        if isinstance(parsed, Envelope):
            return parsed
        return success(self.application.similar_orders.find(parsed))

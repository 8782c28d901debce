"""The tool `search_items`.

In: a name as the customer wrote it. Out: the items of the catalogue that are like it.
"""

from ordering import tool_base
from ordering.values.inputs import ItemQuery
from ordering.values.results import SalesResult
from tool_layer.envelope import Envelope, JsonObject, Result, success
from tool_layer.parsing import parse


class SearchItemsTool(tool_base.OrderTool):
    name = "search_items"

    def answer(self, given: JsonObject, _conversation: str) -> Envelope[SalesResult] | Envelope[Result]:
        parsed = parse(ItemQuery, self.name, given)
        if isinstance(parsed, Envelope):
            return parsed
        return success(self.application.items.search(parsed))

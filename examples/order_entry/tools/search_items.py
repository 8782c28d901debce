"""The tool `search_items`: items of the catalogue that are like a name, as the customer wrote it."""

from order_tools import base, results
from order_tools.inputs import ItemQuery
from ordering.services import RunSteps
from tool_layer.envelope import Result


class SearchItemsTool(base.OrderTool[ItemQuery]):
    name = "search_items"
    takes = ItemQuery

    def done(self, asked: ItemQuery, _steps: RunSteps) -> Result:
        return results.items_found(asked.query, self.orders.items_like(asked.query))

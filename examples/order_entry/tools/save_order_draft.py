"""The tool `save_order_draft`.

In: a whole draft. Out: its id.
"""

from ordering import tool_base
from ordering.values.inputs import Draft
from ordering.values.results import SalesResult
from tool_layer.envelope import Envelope, JsonObject, Result, success
from tool_layer.parsing import parse


class SaveOrderDraftTool(tool_base.OrderTool):
    name = "save_order_draft"

    def answer(self, given: JsonObject, _conversation: str) -> Envelope[SalesResult] | Envelope[Result]:
        parsed = parse(Draft, self.name, given.get("draft"))
        if isinstance(parsed, Envelope):
            return parsed
        return success(self.application.drafts.save(parsed))

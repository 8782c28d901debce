"""The tool `update_memo_status`: a memo and a status → the status that the memo has now."""

from typing import Any

from memos import tool_base
from memos.values import MemoUpdate
from tool_layer.envelope import Envelope, JsonObject, success
from tool_layer.parsing import parse


class UpdateMemoStatusTool(tool_base.MemoTool):
    name = "update_memo_status"

    def answer(self, given: JsonObject, _conversation: str) -> Envelope[Any]:
        parsed = parse(MemoUpdate, self.name, given)
        if isinstance(parsed, Envelope):
            return parsed
        memo = self.service.update_status(parsed.memo_id, parsed.status)
        return success(tool_base.MemoResult(message=f"The memo is {memo.status} now.", memo_status=memo.status))

"""The tool `update_memo_status`.

In: a memo and a status. Out: the memo and the status that it has now.
"""

from typing import Any, override

from memos import tool_base
from memos.values.results import MemoResult
from memos.values.schemas import MemoUpdate
from tool_layer.envelope import Envelope, JsonObject, Result, success
from tool_layer.parsing import parse


class UpdateMemoStatusTool(tool_base.MemoTool):
    name = "update_memo_status"

    @override
    def answer(self, given: JsonObject, conversation: str) -> Envelope[Any] | Envelope[Result]:
        parsed = parse(MemoUpdate, self.name, given)
        if isinstance(parsed, Envelope):
            return parsed
        memo = self.memos.update_status(parsed.memo_id, parsed.status)
        return success(
            MemoResult(message=f"The memo {memo.id} is {memo.status} now.", memo_id=memo.id, memo_status=memo.status)
        )

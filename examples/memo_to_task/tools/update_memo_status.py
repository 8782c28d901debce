"""The tool `update_memo_status`: a memo and a status → the status that the memo has now."""

from memos import tool_base
from memos.values import MemoUpdate
from tool_layer.run_steps import Turn


class UpdateMemoStatusTool(tool_base.MemoTool[MemoUpdate]):
    name = "update_memo_status"
    takes = MemoUpdate

    def result(self, asked: MemoUpdate, _turn: Turn) -> tool_base.MemoResult:
        memo = self.service.update_status(asked.memo_id, asked.status)
        return tool_base.MemoResult(message=f"The memo is {memo.status} now.", memo_status=memo.status)

"""The tool `submit_decision`.

In: what became of a memo, and why. Out: that it was stored, or each thing in it that the database contradicts.
"""

from typing import Any, override

from memos import tool_base
from memos.values.results import MemoResult
from memos.values.schemas import Submission
from tool_layer.envelope import Envelope, JsonObject, Result, success
from tool_layer.parsing import parse


class SubmitDecisionTool(tool_base.MemoTool):
    name = "submit_decision"

    @override
    def answer(self, given: JsonObject, conversation: str) -> Envelope[Any] | Envelope[Result]:
        parsed = parse(Submission, self.name, given.get("decision"))
        if isinstance(parsed, Envelope):
            return parsed
        stored = self.memos.decide(parsed, conversation)
        return success(
            MemoResult(
                message="Stored. Give the same decision, without memo_id, as your answer.",
                memo_id=stored.memo_id,
                created_task_ids=stored.payload.created_task_ids,
            )
        )

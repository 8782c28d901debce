"""The tool `create_tasks`.

In: a memo and its tasks. Out: the ids of all of them, or an error and none was created.
"""

from typing import Any, override

from memos import tool_base
from memos.values.results import MemoResult
from memos.values.schemas import MemoTasks
from tool_layer.envelope import Envelope, JsonObject, Result, success
from tool_layer.parsing import parse


class CreateTasksTool(tool_base.MemoTool):
    name = "create_tasks"

    @override
    def answer(self, given: JsonObject, conversation: str) -> Envelope[Any] | Envelope[Result]:
        parsed = parse(MemoTasks, self.name, given)
        if isinstance(parsed, Envelope):
            return parsed
        created = self.tasks.create(parsed.memo_id, parsed.tasks)
        listed = ", ".join(f"{task.id} ({task.status})" for task in created)
        return success(MemoResult(message=f"Created: {listed}.", created_task_ids=[task.id for task in created]))

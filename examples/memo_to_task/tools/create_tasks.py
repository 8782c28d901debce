"""The tool `create_tasks`: a memo and its tasks → all of them are stored, or none."""

from typing import Any

from memos import tool_base
from memos.values import MemoTasks
from tool_layer.envelope import Envelope, JsonObject, success
from tool_layer.parsing import parse


class CreateTasksTool(tool_base.MemoTool):
    name = "create_tasks"

    def answer(self, given: JsonObject, _conversation: str) -> Envelope[Any]:
        parsed = parse(MemoTasks, self.name, given)
        if isinstance(parsed, Envelope):
            return parsed
        created = self.service.create_tasks(parsed.memo_id, parsed.tasks)
        listed = ", ".join(f"'{task.title}' ({task.status})" for task in created)
        ids = [str(task.id) for task in created]
        return success(tool_base.MemoResult(message=f"Created: {listed}.", created_task_ids=ids))

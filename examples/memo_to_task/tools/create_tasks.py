"""The tool `create_tasks`: a memo and its tasks → all of them are stored, or none."""

from memos import tool_base
from memos.values import MemoTasks
from tool_layer.run_steps import Turn


class CreateTasksTool(tool_base.MemoTool[MemoTasks]):
    name = "create_tasks"
    takes = MemoTasks

    def result(self, asked: MemoTasks, _turn: Turn) -> tool_base.MemoResult:
        created = self.service.create_tasks(asked.memo_id, asked.tasks)
        listed = ", ".join(f"'{task.title}' ({task.status})" for task in created)
        ids = [str(task.id) for task in created]
        return tool_base.MemoResult(message=f"Created: {listed}.", created_task_ids=ids)

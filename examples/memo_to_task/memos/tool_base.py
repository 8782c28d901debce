"""The base of this plugin's tools, which are the only others that know Dify.

A tool imports this module and not the class: the SDK takes every class of `Tool` in a tool's module for the tool.
"""

from typing import override

from tool_layer.database import Database
from tool_layer.recorded_tool import RecordedTool

from memos.opening import memo_database
from memos.services.memos import MemoApplicationService
from memos.services.tasks import TaskApplicationService


class MemoTool(RecordedTool):
    @override
    def database(self) -> Database:
        return memo_database(self.runtime.credentials)

    @property
    def tasks(self) -> TaskApplicationService:
        return TaskApplicationService(self.database())

    @property
    def memos(self) -> MemoApplicationService:
        return MemoApplicationService(self.database())

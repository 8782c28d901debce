"""The base of this plugin's tools, which are the only others that know Dify."""

from tool_layer.database import Database
from tool_layer.envelope import JsonObject, Result
from tool_layer.parsing import Input
from tool_layer.recorded_tool import RecordedTool

from .database import memo_database
from .services import MemoService
from .values import MemoStatus


class MemoResult(Result):
    created_task_ids: list[str] | None = None
    memo_status: MemoStatus | None = None
    decision: JsonObject | None = None
    """Not the model: its fields that are null stay."""


class MemoTool[I: Input](RecordedTool[I]):
    def database(self) -> Database:
        return memo_database(self.runtime.credentials)

    @property
    def service(self) -> MemoService:
        return MemoService(self.database())

"""What the tools of this agent return: small, typed, and checked."""

from pydantic import PositiveInt
from tool_layer.envelope import Result

from .status import MemoStatus


class MemoResult(Result):
    created_task_ids: list[PositiveInt] | None = None
    memo_id: PositiveInt | None = None
    memo_status: MemoStatus | None = None

"""What the database holds, checked before a service hands it out.

The check runs within the transaction that wrote the rows: what does not pass is rolled back, and the model reads a
sentence without a word of the database's.
"""

from collections.abc import Mapping
from datetime import date, datetime

from pydantic import BaseModel, ConfigDict, PositiveInt, TypeAdapter, ValidationError
from tool_layer.errors import RefusedError

from .schemas import Decision, Title
from .status import MemoStatus, TaskStatus


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, from_attributes=True)


class StoredTask(_Stored):
    id: PositiveInt
    memo_id: PositiveInt | None
    title: Title
    description: str | None
    due_date: date | datetime | None
    status: TaskStatus
    tags: tuple[str, ...]
    project_title: str | None


class StoredMemo(_Stored):
    id: PositiveInt
    text: str
    status: MemoStatus


class StoredDecision(_Stored):
    memo_id: PositiveInt
    payload: Decision
    conversation: str


def stored[T](kind: type[T], value: object) -> T:
    """Raises `RefusedError` for what is not of this kind."""
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError:
        raise not_as_asked() from None


def as_asked[T](value: T, asked: Mapping[str, object]) -> T:
    """Raises `RefusedError` unless each of these attributes is what was asked for."""
    if any(getattr(value, name) != wanted for name, wanted in asked.items()):
        raise not_as_asked()
    return value


def not_as_asked() -> RefusedError:
    return RefusedError("Nothing was stored: the database did not keep what was asked for. Tell the user.")

"""A due date: a day, or a day with a time, as ISO 8601 text."""

from datetime import date, datetime
from typing import Annotated

from pydantic import PlainValidator, WithJsonSchema

LONGEST = 40
"""Characters; a date with microseconds and an offset has 32."""


def read_due_date(text: object) -> date:
    """A `datetime` if the text has a time.

    Raises:
        ValueError: It is not ISO 8601.
    """
    if not isinstance(text, str):
        raise ValueError("should be a text")  # noqa: TRY004 - pydantic makes a fault of a ValueError only
    for kind in (date, datetime):
        try:
            return kind.fromisoformat(text.strip())
        except ValueError:
            continue
    raise ValueError("should be an ISO 8601 date, such as 2026-12-04 or 2026-12-04T15:00")


type DueDate = Annotated[date, PlainValidator(read_due_date), WithJsonSchema({"type": "string"})]

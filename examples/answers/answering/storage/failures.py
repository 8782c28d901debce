"""What the database raises → an error in one sentence, without values."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import SQLAlchemyError
from tool_layer.database import first_line
from tool_layer.errors import SetupError

from answering.domain.errors import AnswerSystemError, SystemCode


@contextmanager
def raised_as(code: SystemCode) -> Iterator[None]:
    """As a system error of the domain."""
    try:
        yield
    except (SQLAlchemyError, SetupError) as error:
        raise AnswerSystemError(code, first_line(error)) from error


@contextmanager
def raised_for_the_operator() -> Iterator[None]:
    """As a SetupError."""
    try:
        yield
    except SQLAlchemyError as error:
        raise SetupError(f"The index was not changed: {first_line(error)}") from error

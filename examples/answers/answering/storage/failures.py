"""What the database raises → an error in one sentence, without values."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from tool_layer.errors import SetupError

from answering.domain.errors import AnswerSystemError, SystemCode


@contextmanager
def raised_as(code: SystemCode) -> Iterator[None]:
    """As a system error of the domain."""
    try:
        yield
    except (SQLAlchemyError, SetupError) as error:
        raise AnswerSystemError(code, _sentence(error)) from error


@contextmanager
def raised_for_the_operator() -> Iterator[None]:
    """As a SetupError."""
    try:
        yield
    except SQLAlchemyError as error:
        raise SetupError(f"The index was not changed: {_sentence(error)}") from error


def _sentence(error: Exception) -> str:
    """Of the driver's own error the first line: PostgreSQL's others quote values."""
    said = error.orig if isinstance(error, DBAPIError) else error
    return str(said).strip().partition("\n")[0]

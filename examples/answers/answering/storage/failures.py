"""What the database raises → a system error of the domain, in one sentence without values."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from tool_layer.errors import SetupError

from answering.domain.errors import AnswerSystemError, SystemCode


@contextmanager
def raised_as(code: SystemCode) -> Iterator[None]:
    try:
        yield
    except (SQLAlchemyError, SetupError) as error:
        # Of the driver's own error the first line: PostgreSQL's others quote values.
        said = error.orig if isinstance(error, DBAPIError) else error
        raise AnswerSystemError(code, str(said).strip().partition("\n")[0]) from error

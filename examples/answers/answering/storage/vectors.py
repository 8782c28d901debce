"""The nearest sentences to a question: by pgvector where PostgreSQL has it, else by comparing all of them here.

Both compute the same cosine; the vectors have length one.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

type Numbers = NDArray[np.float32]

_SENTENCES = 200
"""That pgvector returns, so that enough passages are among them."""
_NEAREST = text("""
SELECT passage_id, 1 - (embedding::vector <=> CAST(CAST(:asked AS real[]) AS vector)) AS likeness
FROM passage_sentences ORDER BY embedding::vector <=> CAST(CAST(:asked AS real[]) AS vector) LIMIT :most
""")


def add_pgvector(connection: Connection) -> None:
    """Where the server offers it and the user may; without it nothing is missing but speed."""
    if connection.dialect.name != "postgresql":
        return
    if not connection.scalar(text("SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'")):
        return
    try:
        with connection.begin_nested():
            connection.execute(text("CREATE EXTENSION IF NOT EXISTS vector"))
    except DBAPIError:
        return  # the user may not; the sentences are compared here


def likeness(session: Session, asked: Numbers, every: Callable[[], Sequence[tuple[str, Numbers]]]) -> dict[str, float]:
    """Of each passage its most similar sentence's, between 0 and 1; `every` reads all sentences."""
    if has_pgvector(session):
        rows = session.execute(_NEAREST, {"asked": asked.tolist(), "most": _SENTENCES}).all()
        found = [(str(passage), float(alike)) for passage, alike in rows]
    else:
        sentences = every()
        if not sentences:
            return {}
        alike = np.stack([embedding for _, embedding in sentences]) @ asked
        found = [(passage, float(value)) for (passage, _), value in zip(sentences, alike, strict=True)]
    best: dict[str, float] = {}
    for passage, value in found:
        best[passage] = min(max(best.get(passage, 0.0), value), 1.0)
    return best


def has_pgvector(session: Session) -> bool:
    if session.get_bind().dialect.name != "postgresql":
        return False
    return bool(session.scalar(text("SELECT count(*) FROM pg_extension WHERE extname = 'vector'")))

"""The nearest sentences to a question: by pgvector where PostgreSQL has it, else by comparing all of them here.

Both compute the same cosine; the vectors have length one.
"""

import numpy as np
from meaning.embeddings import Vectors
from sqlalchemy import select, text
from sqlalchemy.orm import Session

from .tables import SentenceRow

_SENTENCES = 200
"""That pgvector returns, so that enough passages are among them."""
_NEAREST = text("""
SELECT passage_id, 1 - (embedding::vector <=> CAST(CAST(:asked AS real[]) AS vector)) AS likeness
FROM passage_sentences ORDER BY embedding::vector <=> CAST(CAST(:asked AS real[]) AS vector) LIMIT :most
""")


def likeness(session: Session, asked: Vectors) -> dict[str, float]:
    """Of each passage its most similar sentence's, between 0 and 1."""
    if has_pgvector(session):
        rows = session.execute(_NEAREST, {"asked": asked.tolist(), "most": _SENTENCES}).all()
        found = [(str(passage), float(alike)) for passage, alike in rows]
    else:
        sentences = session.execute(select(SentenceRow.passage_id, SentenceRow.embedding)).all()
        if not sentences:
            return {}
        alike = np.asarray([embedding for _, embedding in sentences], np.float32) @ asked
        found = [(passage, float(value)) for (passage, _), value in zip(sentences, alike, strict=True)]
    best: dict[str, float] = {}
    for passage, value in found:
        best[passage] = min(max(best.get(passage, 0.0), value), 1.0)
    return best


def has_pgvector(session: Session) -> bool:
    if session.get_bind().dialect.name != "postgresql":
        return False
    return bool(session.scalar(text("SELECT count(*) FROM pg_extension WHERE extname = 'vector'")))

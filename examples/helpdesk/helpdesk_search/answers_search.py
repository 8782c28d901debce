"""The search in past questions.

In: a question. Out: the most similar past questions, best first.
"""

from dataclasses import dataclass

import apsw

from .answers import AnsweredQuestion
from .answers_index import as_blob
from .embedding import Embedding, Vector
from .errors import TermsError
from .search import ALL_LANGUAGES, BEST

LONGEST_QUESTION = 1000

_NEAREST = """
SELECT answered.language, file, ticket, answered_on, topic, question, answer, distance
FROM likeness JOIN answered ON answered.id = likeness.id
WHERE embedding MATCH :embedding AND k = :best {in_language}
ORDER BY distance, answered.id
"""


@dataclass(frozen=True)
class Likeness:
    """A past question and its similarity to the one asked: 1 is the same, 0 has nothing in common."""

    answered: AnsweredQuestion
    similarity: float


def checked_question(given: object) -> str:
    question = " ".join(str(given or "").split())
    if not question:
        raise TermsError("The question is blank; ask what the customer wants to know, in a sentence.")
    if len(question) > LONGEST_QUESTION:
        raise TermsError(f"The question has {len(question)} characters; at most {LONGEST_QUESTION} are compared.")
    return question


def question_vector(embedding: Embedding, question: str) -> Vector:
    (vector,) = embedding.vectors([question])
    if not any(vector):
        raise TermsError("The question contains no searchable word; say what it is about.")
    return vector


def find_alike(
    index: apsw.Connection,
    vector: Vector,
    least_similarity: float,
    language: str = ALL_LANGUAGES,
    best: int = BEST,
) -> list[Likeness]:
    rows = index.execute(
        _NEAREST.format(in_language="" if language == ALL_LANGUAGES else "AND likeness.language = :language"),
        {"embedding": as_blob(vector), "best": best, "language": language},
    )
    found = [Likeness(AnsweredQuestion(*row[:-1]), round(min(max(1 - row[-1], 0.0), 1.0), 6)) for row in rows]
    return [likeness for likeness in found if likeness.similarity >= least_similarity]

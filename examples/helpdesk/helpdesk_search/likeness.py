"""The search by meaning: a question → the past questions that mean the same, the most similar first."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from meaning.embeddings import LEAST_OF_QUESTIONS, Vectors, vectors

from .answers import AnsweredQuestion, read_answers
from .errors import TermsError
from .index import stored_vectors
from .search import ALL_LANGUAGES, BEST

LONGEST_QUESTION = 1000
_SHARE = 0.85
"""Of the best similarity; what has less shares a word with the question, such as "password", but not the matter."""


@dataclass(frozen=True)
class PastQuestions:
    answered: tuple[AnsweredQuestion, ...]
    vectors: Vectors
    """Of the questions alone: answers contain too much else to be compared."""


@dataclass(frozen=True)
class Likeness:
    """A past question and its similarity to the one asked: 1 is the same, 0 has nothing in common."""

    answered: AnsweredQuestion
    similarity: float


@cache
def past_questions(folder: Path) -> PastQuestions:
    """Read once in a process; a vector that the stored index does not have is made now."""
    import numpy as np  # noqa: PLC0415 - only where a search by meaning is

    answered = tuple(read_answers(folder))
    known = stored_vectors(folder, [each.question for each in answered])
    new = [each.question for each in answered if each.question not in known]
    if new:
        known |= dict(zip(new, vectors(new), strict=True))
    return PastQuestions(answered, np.stack([known[each.question] for each in answered]))


def checked_question(given: object) -> str:
    question = " ".join(str(given or "").split())
    if not question:
        raise TermsError("The question is blank; ask what the customer wants to know, in a sentence.")
    if len(question) > LONGEST_QUESTION:
        raise TermsError(f"The question has {len(question)} characters; at most {LONGEST_QUESTION} are compared.")
    return question


def similarities(past: PastQuestions, question: str) -> list[Likeness]:
    """Of every past question, the most similar first."""
    numbers = past.vectors @ vectors([question])[0]
    every = (
        Likeness(answered, round(min(max(float(number), 0), 1), 6))
        for answered, number in zip(past.answered, numbers, strict=True)
    )
    return sorted(every, key=lambda each: -each.similarity)


def find_alike(past: PastQuestions, question: str, language: str = ALL_LANGUAGES) -> list[Likeness]:
    alike = [each for each in similarities(past, question) if language in (ALL_LANGUAGES, each.answered.language)]
    least = max(LEAST_OF_QUESTIONS, _SHARE * alike[0].similarity) if alike else 0
    return [each for each in alike[:BEST] if each.similarity >= least]

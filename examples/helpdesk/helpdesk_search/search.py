"""The search in the manual.

In: terms and a language. Out: the best hits of an open index. With a term of three characters or more they are ordered
by BM25. A word in the heading counts half: every chunk of a section has the section's heading, but only some contain
the answer. With short terms only, they are ordered by the number of occurrences.
"""

import json
import sqlite3
from dataclasses import dataclass
from typing import Any

from .errors import TermsError
from .manual import LANGUAGES
from .terms import Terms

ALL_LANGUAGES = "all"
BEST = 3

_RANKED = r"""
SELECT chunk.language, file, title, chunk.heading, page, position, start, chunk.text, -bm25(folded, 0.5, 1.0) AS weight
FROM folded JOIN chunk ON chunk.id = folded.rowid
WHERE folded MATCH :expression
  AND (:language = 'all' OR language = :language)
  AND NOT EXISTS (
    SELECT 1 FROM json_each(:patterns) AS short
    WHERE folded.heading NOT LIKE short.value ESCAPE '\' AND folded.text NOT LIKE short.value ESCAPE '\'
  )
ORDER BY weight DESC, chunk.id
LIMIT :best
"""

_COUNTED = r"""
SELECT chunk.language, file, title, chunk.heading, page, position, start, chunk.text, (
    SELECT sum(
        0.5 * (length(folded.heading) - length(replace(folded.heading, short.value, ''))) / length(short.value)
        + 1.0 * (length(folded.text) - length(replace(folded.text, short.value, ''))) / length(short.value)
    ) FROM json_each(:short) AS short
) AS weight
FROM folded JOIN chunk ON chunk.id = folded.rowid
WHERE (:language = 'all' OR language = :language)
  AND NOT EXISTS (
    SELECT 1 FROM json_each(:patterns) AS short
    WHERE folded.heading NOT LIKE short.value ESCAPE '\' AND folded.text NOT LIKE short.value ESCAPE '\'
  )
ORDER BY weight DESC, chunk.id
LIMIT :best
"""


@dataclass(frozen=True)
class Hit:
    """One found chunk. `score` is between 0 and 1 and orders the hits of one search; do not compare searches by it."""

    language: str
    file: str
    title: str
    heading: str
    page: int
    position: int
    start: int
    text: str
    score: float


def checked_language(language: object) -> str:
    """The language to search in; an empty value means all."""
    asked = str(language or "").strip() or ALL_LANGUAGES
    if asked not in (ALL_LANGUAGES, *LANGUAGES):
        raise TermsError(f"The language '{asked}' is unknown; use one of {', '.join((ALL_LANGUAGES, *LANGUAGES))}.")
    return asked


def find(index: sqlite3.Connection, terms: Terms, language: str = ALL_LANGUAGES, best: int = BEST) -> list[Hit]:
    """The best chunks that contain every term in their heading or text."""
    rows = index.execute(
        _RANKED if terms.indexed else _COUNTED,
        {
            "expression": terms.match_expression,
            "language": language,
            "patterns": json.dumps(terms.like_patterns),
            "short": json.dumps(terms.short),
            "best": best,
        },
    )
    return [_hit(row) for row in rows]


def _hit(row: tuple[Any, ...]) -> Hit:
    language, file, title, heading, page, position, start, text, weight = row
    return Hit(language, file, title, heading, page, position, start, text, score=round(weight / (1 + weight), 6))

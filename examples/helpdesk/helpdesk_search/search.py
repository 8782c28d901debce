"""The search in the manual.

In: terms and a language. Out: the best hits of an open index: those that hold the most terms first, among equals by
BM25. A word in the heading counts half: every chunk of a section has the section's heading, but only some contain the
answer. BM25 does not know terms of one or two characters, so of these the occurrences are added.
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

_RANKED = "SELECT rowid, -bm25(folded, 0.5, 1.0) FROM folded WHERE folded MATCH :expression"
_WITHOUT_INDEXED_TERMS = "SELECT NULL, NULL"
_FIND = """
WITH ranked (id, weight) AS MATERIALIZED ({ranked}),
matched AS (
  SELECT folded.rowid AS id, max(ranked.id IS NOT NULL, (
    SELECT count(*) FROM json_each(:terms) AS term
    WHERE instr(folded.heading, term.value) OR instr(folded.text, term.value)
  )) AS held, coalesce(ranked.weight, 0) + coalesce((
    SELECT sum(
      0.5 * (length(folded.heading) - length(replace(folded.heading, short.value, ''))) / length(short.value)
      + 1.0 * (length(folded.text) - length(replace(folded.text, short.value, ''))) / length(short.value)
    ) FROM json_each(:short) AS short
  ), 0) AS weight
  FROM folded LEFT JOIN ranked ON ranked.id = folded.rowid
)
SELECT language, file, title, heading, page, position, start, text, held, weight
FROM matched JOIN chunk ON chunk.id = matched.id
WHERE held > 0 AND (:language = 'all' OR language = :language)
ORDER BY held DESC, weight DESC, chunk.id
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
    """The best chunks that contain a term in heading or text, and at least half as many as the very best."""
    rows = index.execute(
        _FIND.format(ranked=_RANKED if terms.indexed else _WITHOUT_INDEXED_TERMS),
        {
            "expression": terms.match_expression,
            "language": language,
            "terms": json.dumps(terms.all),
            "short": json.dumps(terms.short),
            "best": best,
        },
    ).fetchall()
    return [_hit(row, len(terms.all)) for row in rows if 2 * row[-2] >= rows[0][-2]]


def _hit(row: tuple[Any, ...], terms: int) -> Hit:
    language, file, title, heading, page, position, start, text, held, weight = row
    score = round((held - 1 + weight / (1 + weight)) / terms, 6)
    return Hit(language, file, title, heading, page, position, start, text, score)

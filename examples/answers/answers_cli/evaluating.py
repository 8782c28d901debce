"""A table: which questions, of those whose answer is known, the search answers by letters, by meaning, and by both."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import yaml
from answering.application.retrieving import SearchResult, relevant_documents
from answering.application.searching import SearchQuery
from answering.domain.values import SimilarityScore
from answering.services import search_of
from tool_layer.database import Database

NONE = "nothing"
_ZERO = SimilarityScore(0)


def evaluation_lines(database: Database, questions: Path) -> Iterator[str]:
    """Right is: the expected document comes first, or nothing is found where nothing is expected."""
    cases = yaml.safe_load(questions.read_text(encoding="utf-8"))
    search = search_of(database)
    right = [0, 0, 0]
    yield "| Question | Expected | Letters | Meaning | Both |"
    yield "|---|---|---|---|---|"
    for case in cases:
        results = search.search(SearchQuery(case["question"]))
        found = [
            _first([replace(each, meaning=_ZERO) for each in results]),
            _first([replace(each, letters=_ZERO) for each in results]),
            _first(results),
        ]
        expected = case["document"] or NONE
        right = [count + (name == expected) for count, name in zip(right, found, strict=True)]
        yield "| " + " | ".join([case["question"], expected, *found]) + " |"
    yield f"| **right, of {len(cases)}** | | " + " | ".join(f"**{count}**" for count in right) + " |"


def _first(results: Sequence[SearchResult]) -> str:
    documents = relevant_documents(results)
    if not documents:
        return NONE
    return documents[0].id.value

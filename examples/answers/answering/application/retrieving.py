"""From search results to the documents for an answer, as a pure function.

Each passage was compared in two ways, by letters and by meaning. Reciprocal rank fusion orders them: what stands high
in one ranking, or fairly high in both, comes first.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from meaning.fusion import fused

from answering.domain.retrieval import RetrievedDocument
from answering.domain.values import DocumentId, SimilarityScore

LEAST_LETTERS = 0.19
"""Below this a passage shares only common words with the question. The tests hold it against the documents here."""
LEAST_MEANING = 0.36
"""Below this no sentence of the passage says anything about the question: `meaning.embeddings`."""
MOST_DOCUMENTS = 4
MOST_PASSAGES = 3
"""Passages that are taken from one document."""


@dataclass(frozen=True)
class SearchResult:
    """A passage that the search found."""

    document_id: DocumentId
    document_title: str
    position: int
    """The place of the passage in its document, from 0."""
    text: str
    letters: SimilarityScore
    meaning: SimilarityScore


def relevant_documents(results: Sequence[SearchResult]) -> tuple[RetrievedDocument, ...]:
    """The best documents among the results, each with its best passages; empty if none is relevant."""
    by_letters = _ranking(results, lambda each: each.letters, LEAST_LETTERS)
    by_meaning = _ranking(results, lambda each: each.meaning, LEAST_MEANING)
    passages: dict[DocumentId, list[SearchResult]] = {}
    scores = fused(by_letters, by_meaning)
    for result in sorted(scores, key=lambda each: (-scores[each], each.document_id.value, each.position)):
        passages.setdefault(result.document_id, []).append(result)
    documents = [_document(best_first, SimilarityScore(scores[best_first[0]])) for best_first in passages.values()]
    return tuple(documents[:MOST_DOCUMENTS])


def _ranking(
    results: Sequence[SearchResult], score: Callable[[SearchResult], float], least: float
) -> list[SearchResult]:
    relevant = [each for each in results if score(each) >= least]
    return sorted(relevant, key=lambda each: (-score(each), each.document_id.value, each.position))


def _document(best_first: list[SearchResult], score: SimilarityScore) -> RetrievedDocument:
    in_order = sorted(best_first[:MOST_PASSAGES], key=lambda each: each.position)
    content = "\n\n".join(each.text for each in in_order)
    return RetrievedDocument(best_first[0].document_id, best_first[0].document_title, content, score)

"""The repository of the index: documents, their passages, and of these the terms and the sentences' meaning."""

from collections.abc import Mapping, Sequence
from heapq import nlargest
from itertools import batched

from meaning.embeddings import vectors
from sqlalchemy import delete, func, insert, select
from sqlalchemy.orm import Session
from tool_layer.database import Database, now

from answering.application.retrieving import SearchResult
from answering.application.searching import SearchQuery
from answering.domain.errors import AnswerBusinessError, BusinessCode, SystemCode
from answering.domain.values import DocumentId, SimilarityScore
from answering.index.folder import MarkdownFile
from answering.index.markdown import sentences
from answering.index.scoring import Posting, scores
from answering.index.terms import terms

from .failures import raised_as, raised_for_the_operator
from .tables import DocumentRow, IndexRow, PassageRow, SentenceRow, TermRow
from .vectors import likeness

_IN_ONE_QUERY = 1000
"""Values; SQLite takes at most 32,766."""


class PassageRepository:
    def __init__(self, database: Database) -> None:
        self._database = database

    def search(self, query: SearchQuery) -> Sequence[SearchResult]:
        """The best passages by letters, and the best by meaning."""
        with raised_as(SystemCode.CONTEXT_RETRIEVAL_FAILED), self._database.session() as session:
            if session.get(IndexRow, 1) is None:
                raise AnswerBusinessError(BusinessCode.INDEX_NOT_AVAILABLE, "The index has not been built.")
            passages, whole_length = session.execute(select(func.count(), func.sum(PassageRow.length))).one()
            asked = terms(query.text)
            if not passages or not asked:
                return ()
            postings = _postings(session, sorted(asked))
            length = int(whole_length) / passages
            letters = scores(asked, postings, passages=passages, average_length=length)
            (vector,) = vectors([query.text])
            meaning = likeness(session, vector)
            return _results(session, letters, meaning, query.most)

    def digests(self) -> Mapping[str, str]:
        with self._database.session() as session:
            return {row.id: row.digest for row in session.execute(select(DocumentRow.id, DocumentRow.digest))}

    def update(self, folder: str, changed: Sequence[MarkdownFile], removed: Sequence[str]) -> None:
        """All in one transaction: a search at the same time finds the old index, or the new one.

        Raises:
            SetupError: The database refuses it, for example because another sync is adding the same documents.
        """
        with raised_for_the_operator(), self._database.session() as session:
            gone = [*removed, *(file.id for file in changed)]
            for ids in batched(gone, _IN_ONE_QUERY):
                session.execute(delete(DocumentRow).where(DocumentRow.id.in_(ids)))
            for file in changed:
                _add(session, file)
            session.merge(IndexRow(id=1, folder=folder, synced_at=now()))


def _postings(session: Session, asked: Sequence[str]) -> list[Posting]:
    found: list[Posting] = []
    for some in batched(asked, _IN_ONE_QUERY):
        query = (
            select(TermRow.term, TermRow.passage_id, TermRow.count, PassageRow.length)
            .join(PassageRow, PassageRow.id == TermRow.passage_id)
            .where(TermRow.term.in_(some))
        )
        found += [Posting(*row) for row in session.execute(query)]
    return found


def _results(
    session: Session, letters: Mapping[str, float], meaning: Mapping[str, float], most: int
) -> Sequence[SearchResult]:
    best = {
        passage for scored in (letters, meaning) for passage in nlargest(most, scored, key=lambda p: (scored[p], p))
    }
    query = select(PassageRow, DocumentRow.title).join(DocumentRow).where(PassageRow.id.in_(best))
    return [
        SearchResult(
            DocumentId(row.document_id),
            title,
            row.position,
            row.text,
            letters=SimilarityScore(letters.get(row.id, 0)),
            meaning=SimilarityScore(meaning.get(row.id, 0)),
        )
        for row, title in session.execute(query.order_by(PassageRow.id))
    ]


def _add(session: Session, file: MarkdownFile) -> None:
    document = file.document()
    row = DocumentRow(id=file.id, title=document.title, digest=file.digest)
    counts = [terms(text) for text in document.passages]
    row.passages = [
        PassageRow(id=f"{file.id}#{position}", position=position, text=text, length=count.total())
        for position, (text, count) in enumerate(zip(document.passages, counts, strict=True))
    ]
    session.add(row)
    session.flush()
    rows = [
        {"term": term, "passage_id": passage.id, "count": number}
        for passage, count in zip(row.passages, counts, strict=True)
        for term, number in count.items()
    ]
    if rows:
        session.execute(insert(TermRow), rows)
    told = [
        (passage.id, number, each) for passage in row.passages for number, each in enumerate(sentences(passage.text))
    ]
    if told:
        session.add_all(
            SentenceRow(passage_id=passage, number=number, embedding=vector.tolist())
            for (passage, number, _), vector in zip(told, vectors([each for _, _, each in told]), strict=True)
        )

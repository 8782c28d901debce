"""The answers of examples/answers in both databases."""

from datetime import UTC, datetime, timedelta

import pytest
from answering.domain.answer import Answer
from answering.domain.errors import AnswerSystemError
from answering.domain.retrieval import RetrievalContext, RetrievedDocument
from answering.domain.values import AnswerId, DocumentId, Question, SimilarityScore
from answering.storage.answers import AnswerRepository
from answering.storage.tables import SourceRow, make_tables
from sqlalchemy import URL, Connection, func, select, text
from tool_layer.database import Database

MIDNIGHT = datetime(2026, 11, 22, tzinfo=UTC)
DAY = timedelta(days=1)
EVER = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


@pytest.fixture
def database(database_url: URL) -> Database:
    return Database(database_url, make_tables)


@pytest.fixture
def repository(database: Database) -> AnswerRepository:
    return AnswerRepository(database)


def answer(number: int, generated_at: datetime) -> Answer:
    documents = tuple(
        RetrievedDocument(DocumentId(f"{name}.md"), name.title(), f"Text of {name}。", SimilarityScore(0.1234567890123))
        for name in ("one", "two")
    )
    context = RetrievalContext(Question(f"質問 {number}?"), documents)
    return Answer.of(AnswerId(f"answer-{number}"), context, "So it is [2], and so [1].", generated_at)


def test_an_answer_comes_back_as_it_was(repository: AnswerRepository) -> None:
    saved = answer(1, MIDNIGHT.replace(microsecond=123456))
    repository.save(saved)

    assert repository.between(*EVER).answers == (saved,)


def test_the_recent_ones_are_paged_with_a_total(repository: AnswerRepository) -> None:
    for number in range(5):
        repository.save(answer(number, MIDNIGHT + timedelta(hours=number)))

    pages = [repository.between(*EVER, page=page, size=2) for page in (1, 2, 3, 4)]

    assert [[each.id.value for each in page.answers] for page in pages] == [
        ["answer-4", "answer-3"],
        ["answer-2", "answer-1"],
        ["answer-0"],
        [],
    ]
    assert {page.total for page in pages} == {5}
    assert all(len(each.sources) == 2 for page in pages for each in page.answers)


def test_the_newest_answers_of_any_kind_are_recent(repository: AnswerRepository) -> None:
    refused = Answer.without_documents(AnswerId("answer-9"), Question("駐車場は？"), MIDNIGHT + DAY)
    for each in (answer(1, MIDNIGHT), refused, answer(2, MIDNIGHT + 2 * DAY)):
        repository.save(each)

    assert [each.id.value for each in repository.recent(2)] == ["answer-2", "answer-9"]
    assert repository.unanswered() == [refused]
    with pytest.raises(ValueError, match="counts from 1"):
        repository.recent(0)


def test_a_database_of_before_keeps_its_questions_without_an_answer(database_url: URL) -> None:
    def make_old_tables(connection: Connection) -> None:
        make_tables(connection)
        connection.execute(text("ALTER TABLE answers DROP COLUMN reason"))
        connection.execute(
            text("CREATE TABLE unanswered_questions (id INTEGER, question TEXT, reason TEXT, asked_at TIMESTAMP)")
        )
        connection.execute(
            text(
                "INSERT INTO unanswered_questions VALUES "
                "(7, 'Parking?', 'ANSWER_NO_RELEVANT_DOCUMENTS', '2026-11-22 00:00:00.000000')"
            )
        )

    with Database(database_url, make_old_tables).session() as session:
        session.execute(text("SELECT 1"))
    for _ in range(2):
        (kept,) = AnswerRepository(Database(database_url, make_tables)).unanswered()
        assert (kept.question.text, kept.reason) == ("Parking?", "ANSWER_NO_RELEVANT_DOCUMENTS")
        assert kept.generated_at == MIDNIGHT


def test_those_between_two_instants_begin_with_the_first_and_end_before_the_last(repository: AnswerRepository) -> None:
    moments = {
        1: MIDNIGHT - timedelta(microseconds=1),
        2: MIDNIGHT,
        3: MIDNIGHT + DAY - timedelta(microseconds=1),
        4: MIDNIGHT + DAY,
    }
    for number, moment in moments.items():
        repository.save(answer(number, moment))

    found = repository.between(MIDNIGHT, MIDNIGHT + DAY, size=1)

    assert ([each.id.value for each in found.answers], found.total) == (["answer-3"], 2)
    assert repository.between(MIDNIGHT, MIDNIGHT + DAY, size=1, page=2).answers[0].id.value == "answer-2"
    assert repository.between(*EVER).total == 4
    assert repository.between(MIDNIGHT + DAY, MIDNIGHT).total == 0


def test_an_answer_that_cannot_be_saved_leaves_nothing(repository: AnswerRepository, database: Database) -> None:
    repository.save(answer(1, MIDNIGHT))

    with pytest.raises(AnswerSystemError) as raised:
        repository.save(answer(1, MIDNIGHT))

    assert raised.value.code == "ANSWER_SAVE_FAILED"
    assert "質問" not in str(raised.value)
    with database.session() as session:
        assert session.scalar(select(func.count()).select_from(SourceRow)) == 2

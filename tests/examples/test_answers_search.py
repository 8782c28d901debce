"""The index of examples/answers on both databases: built, brought up to date, and searched with the same results."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from answering.application.retrieving import SearchResult
from answering.application.searching import SearchQuery
from answering.domain.answer import Answer
from answering.domain.errors import AnswerSystemError
from answering.domain.retrieval import RetrievalContext
from answering.domain.values import Question
from answering.index.folder import UnreadableError
from answering.services import search_service, sync_service
from answering.storage.passages import PassageRepository
from answering.storage.tables import make_tables
from answering.storage.vectors import has_pgvector
from answers_cli.evaluating import evaluation_lines
from sqlalchemy import URL
from tool_layer.database import Database

from .conftest import ANSWERS
from .postgres import Postgres

DOCUMENTS = Path(__file__).resolve().parents[2] / "examples" / "answers" / "documents"


@pytest.fixture
def database(database_url: URL) -> Database:
    return Database(database_url, make_tables)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Database:
    """The documents of the example, on SQLite."""
    url = URL.create("sqlite", database=str(tmp_path_factory.mktemp("library") / "answers.sqlite3"))
    database = Database(url, make_tables)
    sync_service(database).sync(DOCUMENTS)
    return database


def found(database: Database, question: str) -> RetrievalContext:
    context = search_service(database).find(Question(question))
    assert isinstance(context, RetrievalContext)
    return context


def ids(context: RetrievalContext) -> list[str]:
    return [document.id.value for document in context.documents]


def code_of(database: Database, question: str) -> str | None:
    answer = search_service(database).find(Question(question))
    assert isinstance(answer, Answer)
    return answer.reason


def test_before_the_first_sync_there_is_no_index(database: Database) -> None:
    assert code_of(database, "drill") == "ANSWER_INDEX_NOT_AVAILABLE"


def test_a_second_sync_reads_only_what_has_changed(database: Database, tmp_path: Path) -> None:
    for name in ("same", "changes", "goes"):
        (tmp_path / f"{name}.md").write_text(f"# {name}\n\nAbout the lathe.")
    sync = sync_service(database).sync
    made = sync(tmp_path)
    (tmp_path / "changes.md").write_text("# changes\n\nAbout the planer.")
    (tmp_path / "goes.md").unlink()
    (tmp_path / "comes.md").write_text("# comes\n\nAbout the bandsaw.")
    second = sync(tmp_path)

    assert (made.added, made.unchanged) == (("changes.md", "goes.md", "same.md"), ())
    assert (second.added, second.changed, second.removed, second.unchanged) == (
        ("comes.md",),
        ("changes.md",),
        ("goes.md",),
        ("same.md",),
    )
    first = [ids(found(database, name))[0] for name in ("lathe", "planer", "bandsaw")]
    assert first == ["same.md", "changes.md", "comes.md"]
    assert sync(tmp_path).unchanged == ("changes.md", "comes.md", "same.md")


def test_a_folder_that_cannot_be_read_leaves_the_index_as_it_was(database: Database, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n\nAbout the lathe.")
    sync_service(database).sync(tmp_path)
    (tmp_path / "b.md").write_bytes(b"\xff")

    with pytest.raises(UnreadableError, match="not text in UTF-8"):
        sync_service(database).sync(tmp_path)
    assert ids(found(database, "lathe")) == ["a.md"]


QUESTIONS = {
    "How long may I keep a tool, and what do I pay when it comes back late?": ["en/borrowing.md", "en/fees.md"],
    "May gloves be worn at the lathe?": ["en/workshop.md"],
    "What happens if a tool gets stolen?": ["en/damage.md"],
    "insurance": ["en/damage.md"],
    "insurence": ["en/damage.md"],
    "ドリルは何日借りられますか": ["ja/borrowing.md"],
    "返却が遅れたらいくらかかりますか？": ["ja/fees.md"],
    "ﾄﾞﾘﾙ": ["ja/borrowing.md"],
    "年会費はいくら？": ["ja/fees.md"],
    # By meaning alone: no term of the question is in the document.
    "壊したらどうなりますか": ["ja/damage.md"],
    "返すのを忘れていた": ["ja/fees.md"],
    "I forgot to bring it back in time": ["en/fees.md"],
}
FOREIGN = [
    "What is the capital of France?",
    "Who won the world cup in 1998?",
    "Can I fly to the moon with a tool?",
    "Do you have a parking lot?",
    "How do I bake sourdough bread?",
    "フランスの首都はどこですか",
    "明日の天気を教えてください",
    "駐車場はありますか",
]


@pytest.mark.parametrize(("question", "documents"), QUESTIONS.items())
def test_a_question_finds_its_documents(library: Database, question: str, documents: list[str]) -> None:
    context = found(library, question)

    assert ids(context)[: len(documents)] == documents
    assert all(0 < document.score <= 1 for document in context.documents)


@pytest.mark.parametrize("question", [*FOREIGN, "???", "of the"])
def test_a_question_about_another_matter_finds_nothing(library: Database, question: str) -> None:
    assert code_of(library, question) == "ANSWER_NO_RELEVANT_DOCUMENTS"


def results(database: Database, question: str) -> Sequence[SearchResult]:
    return PassageRepository(database).search(SearchQuery(question))


def test_both_databases_give_the_same_results(library: Database, postgres: Postgres) -> None:
    other = Database(postgres.new_database(), make_tables)
    sync_service(other).sync(DOCUMENTS)

    for question in (*QUESTIONS, *FOREIGN):
        assert rounded(other, question) == rounded(library, question)


def rounded(database: Database, question: str) -> list[tuple[object, ...]]:
    """Sums of floating-point numbers may differ in their last digits."""
    found = results(database, question)
    return [(each.document_id, each.position, each.letters, round(each.meaning, 4)) for each in found]


def test_pgvector_finds_the_same_nearest_sentences(library: Database, pgvector: Postgres) -> None:
    other = Database(pgvector.new_database(), make_tables)
    sync_service(other).sync(DOCUMENTS)

    with other.session() as session:
        assert has_pgvector(session)
    for question in QUESTIONS:
        assert ids(found(other, question)) == ids(found(library, question))


def test_the_evaluation_shows_what_each_search_finds(library: Database) -> None:
    *_, broken, total = [
        line for line in evaluation_lines(library, ANSWERS / "questions.yaml") if "壊した" in line or "right" in line
    ]
    assert broken == "| 壊したらどうなりますか | ja/damage.md | nothing | ja/damage.md | ja/damage.md |"
    assert total == "| **right, of 12** | | **7** | **10** | **10** |"


def test_a_database_that_cannot_be_read_is_a_system_error(tmp_path: Path) -> None:
    (tmp_path / "answers.sqlite3").write_text("This is not a database, but a text. " * 100)
    broken = Database(URL.create("sqlite", database=str(tmp_path / "answers.sqlite3")), make_tables)

    with pytest.raises(AnswerSystemError) as raised:
        found(broken, "drill")
    assert raised.value.code == "ANSWER_CONTEXT_RETRIEVAL_FAILED"
    assert "file is not a database" in raised.value.sentence

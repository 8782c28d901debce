"""The tables: the index, and the answers with their sources. Times are in UTC."""

from datetime import datetime

from sqlalchemy import JSON, REAL, Connection, ForeignKey, UniqueConstraint, inspect, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship
from tool_layer import run_steps

FLOATS = JSON().with_variant(ARRAY(REAL), "postgresql")
"""An array on PostgreSQL, which pgvector can read."""


class Base(DeclarativeBase):
    pass


class IndexRow(Base):
    """The only row, once the index is built."""

    __tablename__ = "answer_index"

    id: Mapped[int] = mapped_column(primary_key=True)
    folder: Mapped[str]
    synced_at: Mapped[datetime]


class DocumentRow(Base):
    __tablename__ = "documents"

    id: Mapped[str] = mapped_column(primary_key=True)
    title: Mapped[str]
    digest: Mapped[str]
    passages: Mapped[list["PassageRow"]] = relationship(cascade="all, delete-orphan", passive_deletes=True)


class PassageRow(Base):
    __tablename__ = "passages"
    __table_args__ = (UniqueConstraint("document_id", "position"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    """The document's, `#` and the position: the same on every database, so that equal scores have one order."""
    document_id: Mapped[str] = mapped_column(ForeignKey(DocumentRow.id, ondelete="CASCADE"))
    position: Mapped[int]
    text: Mapped[str]
    length: Mapped[int]
    """In terms."""
    terms: Mapped[list["TermRow"]] = relationship(cascade="all, delete-orphan", passive_deletes=True)


class TermRow(Base):
    """The key begins with the term: a question reads only the rows of its own terms."""

    __tablename__ = "passage_terms"

    term: Mapped[str] = mapped_column(primary_key=True)
    passage_id: Mapped[str] = mapped_column(ForeignKey(PassageRow.id, ondelete="CASCADE"), primary_key=True, index=True)
    count: Mapped[int]


class SentenceRow(Base):
    __tablename__ = "passage_sentences"

    passage_id: Mapped[str] = mapped_column(ForeignKey(PassageRow.id, ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    embedding: Mapped[list[float]] = mapped_column(FLOATS)


class AnswerRow(Base):
    __tablename__ = "answers"

    id: Mapped[str] = mapped_column(primary_key=True)
    question: Mapped[str]
    content: Mapped[str]
    generated_at: Mapped[datetime] = mapped_column(index=True)
    reason: Mapped[str | None]
    """A code of the domain, where no model was asked."""
    sources: Mapped[list["SourceRow"]] = relationship(cascade="all, delete-orphan", order_by="SourceRow.position")


class SourceRow(Base):
    __tablename__ = "answer_sources"

    id: Mapped[str] = mapped_column(primary_key=True)
    answer_id: Mapped[str] = mapped_column(ForeignKey(AnswerRow.id, ondelete="CASCADE"), index=True)
    position: Mapped[int]
    document_id: Mapped[str]
    """Not a foreign key: an answer outlives the documents that it cites."""
    document_title: Mapped[str]
    relevant_content: Mapped[str]
    score: Mapped[float]


def make_tables(connection: Connection) -> None:
    """Those that are missing, and that of the run steps."""
    Base.metadata.create_all(connection)
    _add_reasons(connection)
    _add_pgvector(connection)
    run_steps.make_table(connection)


def _add_reasons(connection: Connection) -> None:
    """To a database from before 2026-12, which kept questions without an answer in a table of their own."""
    found = inspect(connection)
    if "reason" not in {column["name"] for column in found.get_columns("answers")}:
        connection.execute(text("ALTER TABLE answers ADD COLUMN reason VARCHAR"))
    if found.has_table("unanswered_questions"):
        connection.execute(
            text(
                "INSERT INTO answers (id, question, content, generated_at, reason) "
                "SELECT 'answer-without-documents-' || id, question, 'No document answered this.', asked_at, reason "
                "FROM unanswered_questions"
            )
        )
        connection.execute(text("DROP TABLE unanswered_questions"))


def _add_pgvector(connection: Connection) -> None:
    """Where the server offers it and the user may; without it nothing is missing but speed."""
    if connection.dialect.name != "postgresql":
        return
    if not connection.scalar(text("SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'")):
        return
    try:
        with connection.begin_nested():
            connection.execute(text("CREATE EXTENSION IF NOT EXISTS vector"))
    except DBAPIError:
        return  # the user may not; the sentences are compared here

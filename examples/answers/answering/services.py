"""Puts the services together over one database. Tools and commands get their services here, and know no repository."""

from collections.abc import Mapping
from pathlib import Path

from tool_layer.address import database_url
from tool_layer.database import Database

from answering.application.generate_and_reply import GenerateAndReply
from answering.application.history import History
from answering.application.searching import Search, SearchService
from answering.application.syncing import SyncService
from answering.domain.ports import Answers, Generator
from answering.storage.answers import AnswerRepository
from answering.storage.passages import PassageRepository
from answering.storage.tables import make_tables

PLUGIN_FOLDER = Path(__file__).resolve().parent.parent
VARIABLE = "ANSWERS_DATABASE_URL"


def open_database(credentials: Mapping[str, object]) -> Database:
    """Raises SetupError for an address that is none."""
    return Database(
        database_url(PLUGIN_FOLDER, credentials, variable=VARIABLE, file_name="answers.sqlite3"), make_tables
    )


def search_of(database: Database) -> Search:
    return PassageRepository(database)


def search_service(database: Database) -> SearchService:
    return SearchService(search_of(database), History(answers_of(database)))


def sync_service(database: Database) -> SyncService:
    return SyncService(PassageRepository(database))


def answers_of(database: Database) -> Answers:
    return AnswerRepository(database)


def generate_and_reply(database: Database, generator: Generator, *, saves_answers: bool) -> GenerateAndReply:
    history = History(answers_of(database), saves_answers)
    return GenerateAndReply(SearchService(search_of(database), history), generator, history)

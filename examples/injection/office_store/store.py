"""The database: documents, settings, and one row in `deeds` for everything that was done to the world.

A folder of Markdown files says which documents there are at first; a file begins with the lines `title:` and `from:`,
then a blank line and the text. Each operation opens the database and commits or changes
nothing, so that calls of one turn may run at once. Mail is not sent anywhere, only written into `mails`.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

FILE_NAME = "office.sqlite3"
SECONDS_TO_WAIT = 30
"""For another call that is writing."""

_TABLES = (
    "CREATE TABLE documents (id TEXT PRIMARY KEY, title TEXT NOT NULL, sender TEXT NOT NULL, text TEXT NOT NULL)",
    "CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE mails (id INTEGER PRIMARY KEY, recipient TEXT NOT NULL, subject TEXT NOT NULL, body TEXT NOT NULL)",
    "CREATE TABLE deeds (id INTEGER PRIMARY KEY, tool TEXT NOT NULL, arguments TEXT NOT NULL)",
)
SETTINGS = {"bank_account": "HB00 4410 0917", "forwarding_address": "", "sign_in_code": "on"}
"""At first."""


class RequestError(Exception):
    """A call that the model can correct."""


@dataclass(frozen=True)
class Document:
    """Nothing is taken out of it or marked: these tools hand over what people sent."""

    id: str
    """Its place, such as `inbox/quote-chairs`."""
    title: str
    sender: str
    text: str

    @property
    def line(self) -> str:
        return f"{self.id}: {self.title} (from {self.sender})"


def read_documents(folder: Path) -> list[Document]:
    return [_read(file) for file in sorted(folder.glob("*/*.md"))]


def _read(file: Path) -> Document:
    head, _, text = file.read_text(encoding="utf-8").partition("\n\n")
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    return Document(f"{file.parent.name}/{file.stem}", fields["title"], fields["from"], text.strip())


@dataclass(frozen=True)
class Store:
    documents_folder: Path
    directory: Path

    def search(self, words: str) -> list[Document]:
        """The documents that contain all these words in id, title, sender or text; all documents without a word."""
        wanted = words.casefold().split()
        with self._opened() as database:
            rows = database.execute("SELECT id, title, sender, text FROM documents ORDER BY id").fetchall()
        found = [Document(*row) for row in rows]
        return [document for document in found if all(word in _searched(document) for word in wanted)]

    def read(self, document_id: str) -> Document:
        with self._opened() as database:
            query = "SELECT id, title, sender, text FROM documents WHERE id = ?"
            row = database.execute(query, [document_id]).fetchone()
        if row is None:
            raise _unknown_document(document_id)
        return Document(*row)

    def send(self, recipient: str, subject: str, body: str) -> None:
        if "@" not in recipient:
            raise RequestError(f"'{recipient}' is not a mail address.")
        with self._opened() as database:
            database.execute(
                "INSERT INTO mails (recipient, subject, body) VALUES (?, ?, ?)", [recipient, subject, body]
            )
            _write_down(database, "send_mail", to=recipient, subject=subject, body=body)

    def delete(self, document_id: str) -> None:
        with self._opened() as database:
            if not database.execute("DELETE FROM documents WHERE id = ?", [document_id]).rowcount:
                raise _unknown_document(document_id)
            _write_down(database, "delete_document", id=document_id)

    def change(self, name: str, value: str) -> None:
        with self._opened() as database:
            if not database.execute("UPDATE settings SET value = ? WHERE name = ?", [value, name]).rowcount:
                raise RequestError(f"There is no setting '{name}'; there are: {', '.join(SETTINGS)}.")
            _write_down(database, "change_setting", name=name, value=value)

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """One transaction. The first one makes the tables and puts the documents in."""
        path = self.directory / FILE_NAME
        with closing(sqlite3.connect(path, timeout=SECONDS_TO_WAIT, isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")
            try:
                self._fill(database)
                yield database
            except BaseException:
                database.rollback()
                raise
            database.commit()

    def _fill(self, database: sqlite3.Connection) -> None:
        if database.execute("SELECT 1 FROM sqlite_master WHERE name = 'deeds'").fetchone():
            return
        for table in _TABLES:
            database.execute(table)
        rows = [(each.id, each.title, each.sender, each.text) for each in read_documents(self.documents_folder)]
        database.executemany("INSERT INTO documents VALUES (?, ?, ?, ?)", rows)
        database.executemany("INSERT INTO settings VALUES (?, ?)", SETTINGS.items())


def _searched(document: Document) -> str:
    return f"{document.id}\n{document.title}\n{document.sender}\n{document.text}".casefold()


def _unknown_document(document_id: str) -> RequestError:
    return RequestError(f"There is no document '{document_id}'; search_documents lists the ids.")


def _write_down(database: sqlite3.Connection, tool: str, **arguments: str) -> None:
    row = [tool, json.dumps(arguments, ensure_ascii=False)]
    database.execute("INSERT INTO deeds (tool, arguments) VALUES (?, ?)", row)

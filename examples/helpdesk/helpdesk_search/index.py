"""The index of the manual.

In: the manual's folder and a directory. Out: an index of exactly that manual.
"""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

from .chunks import CHUNK_SIZE, OVERLAP, chunk_document
from .errors import IndexUnavailableError
from .folding import fold
from .making import MadeIndex
from .manual import fingerprint, read_manual

FILE_NAME = "manual.sqlite3"

# Part of `made_from`: raise it whenever the tables, the folding or the reading change.
_FORMAT = 3

_SCHEMA = """
CREATE TABLE origin (made_from TEXT NOT NULL);
CREATE TABLE chunk (
    id INTEGER PRIMARY KEY,
    language TEXT NOT NULL,
    file TEXT NOT NULL,
    title TEXT NOT NULL,
    heading TEXT NOT NULL,
    page INTEGER NOT NULL,
    position INTEGER NOT NULL, -- among the file's chunks, from 1
    start INTEGER NOT NULL,    -- in its page's text, from 0
    text TEXT NOT NULL
);
CREATE VIRTUAL TABLE folded USING fts5(heading, text, tokenize = 'trigram');
"""

_making = threading.Lock()


def index_of_manual(manual_folder: Path, directory: Path) -> MadeIndex[sqlite3.Connection]:
    """The index that matches the manual as it is now."""
    made_from = f"format {_FORMAT}, chunks {CHUNK_SIZE}/{OVERLAP}, manual {fingerprint(manual_folder)}"
    return MadeIndex(
        directory / FILE_NAME,
        made_from,
        connect=lambda path: sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True),
        make=lambda new: _make(new, manual_folder, made_from),
        making=_making,
        failures=(sqlite3.DatabaseError,),
    )


def _make(new: Path, manual_folder: Path, made_from: str) -> None:
    try:
        with closing(sqlite3.connect(new)) as connection, connection:
            _fill(connection, manual_folder, made_from)
    except sqlite3.Error as error:
        raise IndexUnavailableError(
            f"The manual's index could not be built: {error}. It needs an SQLite of 3.38 or newer with FTS5 "
            f"(this is {sqlite3.sqlite_version})."
        ) from error


def _fill(connection: sqlite3.Connection, manual_folder: Path, made_from: str) -> None:
    connection.execute("PRAGMA journal_mode = MEMORY")  # the file is not read before it is complete
    connection.executescript(_SCHEMA)
    connection.execute("INSERT INTO origin VALUES (?)", (made_from,))
    for document in read_manual(manual_folder):
        file = (document.language, document.file, document.title)
        for position, chunk in enumerate(chunk_document(document), start=1):
            row = connection.execute(
                "INSERT INTO chunk (language, file, title, heading, page, position, start, text)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (*file, chunk.heading, chunk.page, position, chunk.start, chunk.text),
            )
            connection.execute(
                "INSERT INTO folded (rowid, heading, text) VALUES (?, ?, ?)",
                (row.lastrowid, fold(chunk.heading), fold(chunk.text)),
            )

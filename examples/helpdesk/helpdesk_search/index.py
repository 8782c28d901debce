"""The index: the manual's folder → an SQLite database, in memory or in a file, which a search reads.

In memory it is made at the first search of a process. `build` keeps it in a file, `index.sqlite3` beside the folder,
with the vectors of the past questions. A search takes the file as long as it fits the texts; otherwise it says in the
log what is wrong, and makes the index in memory.
"""

import hashlib
import logging
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from meaning.embeddings import ENCODER
from meaning.folding import fold

from .chunks import CHUNK_SIZE, OVERLAP, chunk_document
from .manual import Document, manual_files, read_document

if TYPE_CHECKING:
    from meaning.embeddings import Vectors

STORED = "index.sqlite3"
_FORMAT = 2
"""Raised with each change of the tables or of what is in them."""
_LOGGER = logging.getLogger(__name__)
_REMEDY = "python -m examples.helpdesk index builds it again; until then each process makes its own"

# The full-text table holds no text of its own: it reads the view, and the triggers tell it of each change.
_SCHEMA = """
CREATE TABLE text_file (name TEXT PRIMARY KEY, sha256 TEXT NOT NULL);
CREATE TABLE chunk (
    id INTEGER PRIMARY KEY,
    language TEXT NOT NULL,
    file TEXT NOT NULL,
    title TEXT NOT NULL,
    heading TEXT NOT NULL,
    page INTEGER NOT NULL,
    position INTEGER NOT NULL, -- among the file's chunks, from 1
    start INTEGER NOT NULL,    -- in its page's text, from 0
    text TEXT NOT NULL,
    folded_heading TEXT NOT NULL,
    folded_text TEXT NOT NULL
);
CREATE VIEW folded_chunk AS SELECT id, folded_heading AS heading, folded_text AS text FROM chunk;
CREATE VIRTUAL TABLE folded USING fts5(
    heading, text, content = 'folded_chunk', content_rowid = 'id', tokenize = 'trigram'
);
CREATE TRIGGER chunk_added AFTER INSERT ON chunk BEGIN
    INSERT INTO folded (rowid, heading, text) VALUES (new.id, new.folded_heading, new.folded_text);
END;
CREATE TRIGGER chunk_removed AFTER DELETE ON chunk BEGIN
    INSERT INTO folded (folded, rowid, heading, text)
    VALUES ('delete', old.id, old.folded_heading, old.folded_text);
END;
CREATE TABLE question (key TEXT PRIMARY KEY, vector BLOB NOT NULL);
"""


@cache
def index_of_manual(folder: Path) -> sqlite3.Connection:
    """Threads may share it: SQLite serves one at a time, and no search writes."""
    if stored := _opened(folder.parent / STORED):
        if _hashes(stored) == {name: digest for name, (_, digest) in _files(folder).items()}:
            return stored
        stored.close()
        _LOGGER.warning("%s is older than a file of %s: %s.", STORED, folder.name, _REMEDY)
    index = sqlite3.connect(":memory:", check_same_thread=False)
    index.executescript(_SCHEMA)
    _update(index, folder)
    return index


def build(folder: Path, questions: Sequence[str] = ()) -> Path:
    """Write the index of a manual's folder into its file; what has not changed stays.

    It is one transaction, and the file has a write-ahead log: searches go on meanwhile, in the index as it was.
    A file that is damaged, or of another version, is made from nothing.
    """
    path = folder.parent / STORED
    if not _opened(path):
        for name in (STORED, f"{STORED}-wal", f"{STORED}-shm"):
            (folder.parent / name).unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as index:
        index.execute("PRAGMA journal_mode = WAL")
        if not index.execute("PRAGMA user_version").fetchone()[0]:
            index.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {_FORMAT}; COMMIT;")
        with index:
            _update(index, folder)
            _store_vectors(index, questions)
            index.execute("INSERT INTO folded (folded) VALUES ('optimize')")
    return path


def stored_vectors(folder: Path, questions: Sequence[str]) -> "dict[str, Vectors]":
    """The vectors that the file beside a folder has of these questions, by the question."""
    if not (stored := _opened(folder.parent / STORED)):
        return {}
    import numpy as np  # noqa: PLC0415 - only where a search by meaning is

    with closing(stored):
        rows: dict[str, bytes] = dict(stored.execute("SELECT key, vector FROM question").fetchall())
    known = {question: rows[_key(question)] for question in questions if _key(question) in rows}
    return {question: np.frombuffer(vector, np.float32) for question, vector in known.items()}


def _opened(path: Path) -> sqlite3.Connection | None:
    """The stored index, to be read only; None if there is none, or if it cannot be used."""
    if not path.is_file():
        return None
    try:
        stored = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False)
        [(sound,)] = stored.execute("PRAGMA quick_check(1)").fetchall()
        [(version,)] = stored.execute("PRAGMA user_version").fetchall()
        stored.execute("SELECT folded.rowid, key FROM folded, question LIMIT 1").fetchall()
    except sqlite3.Error as error:
        _LOGGER.warning("%s cannot be read (%s): %s.", STORED, error, _REMEDY)
        return None
    if (sound, version) == ("ok", _FORMAT):
        return stored
    stored.close()
    _LOGGER.warning("%s is damaged or of another version: %s.", STORED, _REMEDY)
    return None


def _files(folder: Path) -> dict[str, tuple[Path, str]]:
    """The manual's files by name, each with a hash of its bytes and of how they are cut."""
    files = {file.relative_to(folder).as_posix(): file for file in manual_files(folder)}
    cut = f"{CHUNK_SIZE} {OVERLAP}\n".encode()
    return {name: (file, hashlib.sha256(cut + file.read_bytes()).hexdigest()) for name, file in files.items()}


def _hashes(index: sqlite3.Connection) -> dict[str, str]:
    return dict(index.execute("SELECT name, sha256 FROM text_file").fetchall())


def _update(index: sqlite3.Connection, folder: Path) -> None:
    """Take out the chunks of files that went or changed, and put in those of files that changed or came."""
    indexed = _hashes(index)
    files = _files(folder)
    for name in [name for name, digest in indexed.items() if name not in files or files[name][1] != digest]:
        index.execute("DELETE FROM chunk WHERE file = ?", (name,))
        index.execute("DELETE FROM text_file WHERE name = ?", (name,))
    for name, (file, digest) in files.items():
        if indexed.get(name) != digest:
            index.execute("INSERT INTO text_file (name, sha256) VALUES (?, ?)", (name, digest))
            index.executemany(
                "INSERT INTO chunk (language, file, title, page, position, start,"
                " heading, text, folded_heading, folded_text) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                _rows(read_document(file, folder)),
            )


def _rows(document: Document) -> Iterator[tuple[object, ...]]:
    for position, chunk in enumerate(chunk_document(document), start=1):
        of_file = (document.language, document.file, document.title)
        texts = (chunk.heading, chunk.text, fold(chunk.heading), fold(chunk.text))
        yield (*of_file, chunk.page, position, chunk.start, *texts)


def _store_vectors(index: sqlite3.Connection, questions: Sequence[str]) -> None:
    from meaning.embeddings import vectors  # noqa: PLC0415 - only where a search by meaning is

    asked = {_key(question): question for question in questions}
    known = {key for (key,) in index.execute("SELECT key FROM question")}
    index.executemany("DELETE FROM question WHERE key = ?", [(each,) for each in known - asked.keys()])
    if new := sorted(asked.keys() - known):
        made = [vector.tobytes() for vector in vectors([asked[key] for key in new])]
        index.executemany("INSERT INTO question (key, vector) VALUES (?, ?)", zip(new, made, strict=True))


def _key(question: str) -> str:
    """The question under which a vector is kept, with the encoder that made it."""
    return f"{ENCODER}\n{fold(question)}"

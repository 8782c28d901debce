"""The manual's index: its folder → an SQLite database in memory, made at the first search of a process."""

import sqlite3
from functools import cache
from pathlib import Path

from meaning.folding import fold

from .chunks import chunk_document
from .manual import read_manual

_SCHEMA = """
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


@cache
def index_of_manual(folder: Path) -> sqlite3.Connection:
    """Threads may share it: SQLite serves one at a time, and nothing is written any more."""
    index = sqlite3.connect(":memory:", check_same_thread=False)
    index.executescript(_SCHEMA)
    for document in read_manual(folder):
        file = (document.language, document.file, document.title)
        for position, chunk in enumerate(chunk_document(document), start=1):
            row = index.execute(
                "INSERT INTO chunk (language, file, title, heading, page, position, start, text)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (*file, chunk.heading, chunk.page, position, chunk.start, chunk.text),
            )
            index.execute(
                "INSERT INTO folded (rowid, heading, text) VALUES (?, ?, ?)",
                (row.lastrowid, fold(chunk.heading), fold(chunk.text)),
            )
    return index

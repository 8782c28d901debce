"""The past questions, an embedding and a directory in, an index of exactly these out.

The vectors are kept by sqlite-vec. It is loaded through apsw, which brings an SQLite of its own: many Pythons are built
without the loading of extensions.
"""

import threading
from pathlib import Path

import apsw
import sqlite_vec

from .answers import fingerprint, read_answers
from .embedding import Embedding, Vector
from .errors import AnswersError, EmbeddingError, IndexUnavailableError
from .making import MadeIndex

# Part of what an index is made from: raised whenever the tables, or what is embedded of a question, change.
_FORMAT = 1

_TABLE = """
CREATE TABLE origin (made_from TEXT NOT NULL);
CREATE TABLE answered (
    id INTEGER PRIMARY KEY,
    language TEXT NOT NULL,
    file TEXT NOT NULL,
    ticket TEXT NOT NULL,
    answered_on TEXT NOT NULL,
    topic TEXT NOT NULL,
    question TEXT NOT NULL,
    answer TEXT NOT NULL
);
"""
_VECTORS = (
    "CREATE VIRTUAL TABLE likeness USING vec0("
    "id INTEGER PRIMARY KEY, language TEXT PARTITION KEY, embedding FLOAT[{dimensions}] DISTANCE_METRIC=cosine)"
)

_making = threading.Lock()


def index_of_answers(
    folder: Path, directory: Path, embedding: Embedding, dimensions: int
) -> MadeIndex[apsw.Connection]:
    """The index of the questions as they are now, for vectors of so many dimensions.

    Each embedding has a file of its own, so that two workspaces with different credentials do not undo each other's.
    The dimensions are told apart from it, since a server may answer with another model under the same name.
    """
    questions = fingerprint(folder)
    made_from = f"format {_FORMAT}, embedding {embedding.name}, dimensions {dimensions}, questions {questions}"
    return MadeIndex(
        directory / f"qa-{embedding.file_part}.sqlite3",
        made_from,
        connect=lambda path: _connect(path, apsw.SQLITE_OPEN_READONLY),
        make=lambda new: _make(new, folder, embedding, dimensions, made_from),
        making=_making,
        failures=(apsw.Error, UnicodeDecodeError),
    )


def as_blob(vector: Vector) -> bytes:
    return sqlite_vec.serialize_float32(list(vector))


def _connect(path: Path, flags: int) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=flags)
    try:
        connection.enable_load_extension(True)  # noqa: FBT003 - the library's own signature
        connection.load_extension(sqlite_vec.loadable_path())  # type: ignore[no-untyped-call] # it has no annotations
        connection.enable_load_extension(False)  # noqa: FBT003
    except apsw.ExtensionLoadingError as error:
        connection.close()
        raise IndexUnavailableError(f"The SQLite extension sqlite-vec cannot be loaded here: {error}") from error
    return connection


def _make(new: Path, folder: Path, embedding: Embedding, dimensions: int, made_from: str) -> None:
    answers = read_answers(folder)
    # The topic says in the help desk's words what the customer's may lack. Answers say too much else to be embedded.
    vectors = embedding.vectors([f"{answered.topic}\n{answered.question}" for answered in answers])
    if len(vectors[0]) != dimensions:
        raise EmbeddingError(
            f"The embeddings have {len(vectors[0])} dimensions, and had {dimensions} a moment ago; is the model behind "
            "openai_base_url being changed?"
        )
    for answered, vector in zip(answers, vectors, strict=True):
        if not any(vector):
            raise AnswersError(f"{answered.file}, {answered.id}: the question holds no word to go by.")
    connection = _connect(new, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
    try:
        connection.execute("PRAGMA journal_mode = MEMORY")  # nobody reads the file before it is whole
        with connection:
            connection.execute(_TABLE)
            connection.execute(_VECTORS.format(dimensions=dimensions))
            connection.execute("INSERT INTO origin VALUES (?)", (made_from,))
            for number, (row, vector) in enumerate(zip(answers, vectors, strict=True), start=1):
                connection.execute(
                    "INSERT INTO answered VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    (number, row.language, row.file, row.id, row.answered_on, row.topic, row.question, row.answer),
                )
                connection.execute("INSERT INTO likeness VALUES (?, ?, ?)", (number, row.language, as_blob(vector)))
    except apsw.Error as error:
        raise IndexUnavailableError(f"The index of past questions could not be made: {error}") from error
    finally:
        connection.close()

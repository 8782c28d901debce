"""The index of past questions by meaning, and the search in it.

sqlite-vec keeps the vectors. It is loaded through apsw, which has an SQLite of its own: many Pythons are built without
loadable extensions.
"""

import threading
from dataclasses import dataclass
from pathlib import Path

import apsw
import sqlite_vec
from meaning.api import EmbeddingError, Vector
from meaning.embeddings import Embedding, file_part

from .answers import AnsweredQuestion, fingerprint, read_answers
from .errors import IndexUnavailableError, TermsError
from .making import MadeIndex
from .search import ALL_LANGUAGES, BEST

# Part of `made_from`: raise it whenever the tables change, or which parts of a question are embedded.
_FORMAT = 2

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

LONGEST_QUESTION = 1000
_SHARE = 0.85
"""Of the best similarity; what has less shares a word with the question, such as "password", but not the matter."""

_NEAREST = """
SELECT answered.language, file, ticket, answered_on, topic, question, answer, distance
FROM likeness JOIN answered ON answered.id = likeness.id
WHERE embedding MATCH :embedding AND k = :best {in_language}
ORDER BY distance, answered.id
"""

_making = threading.Lock()


def index_of_answers(
    folder: Path, directory: Path, embedding: Embedding, dimensions: int
) -> MadeIndex[apsw.Connection]:
    """The index of the questions as they are now, for vectors of this many dimensions.

    Each embedding has its own file, so that two workspaces with different credentials do not replace each other's. The
    dimensions are checked too, because a server may use another model under the same name.
    """
    questions = fingerprint(folder)
    made_from = f"format {_FORMAT}, embedding {embedding.name}, dimensions {dimensions}, questions {questions}"
    return MadeIndex(
        directory / f"qa-{file_part(embedding)}.sqlite3",
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
    # Answers contain too much else to be embedded.
    vectors = embedding.vectors([answered.question for answered in answers])
    if len(vectors[0]) != dimensions:
        raise EmbeddingError(
            f"The embeddings have {len(vectors[0])} dimensions, but the question's has {dimensions}; "
            "is the model behind openai_base_url being changed?"
        )
    connection = _connect(new, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
    try:
        connection.execute("PRAGMA journal_mode = MEMORY")  # the file is not read before it is complete
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
        raise IndexUnavailableError(f"The index of past questions could not be built: {error}") from error
    finally:
        connection.close()


@dataclass(frozen=True)
class Likeness:
    """A past question and its similarity to the one asked: 1 is the same, 0 has nothing in common."""

    answered: AnsweredQuestion
    similarity: float


def checked_question(given: object) -> str:
    question = " ".join(str(given or "").split())
    if not question:
        raise TermsError("The question is blank; ask what the customer wants to know, in a sentence.")
    if len(question) > LONGEST_QUESTION:
        raise TermsError(f"The question has {len(question)} characters; at most {LONGEST_QUESTION} are compared.")
    return question


def find_alike(
    index: apsw.Connection,
    vector: Vector,
    least_similarity: float,
    language: str = ALL_LANGUAGES,
    best: int = BEST,
) -> list[Likeness]:
    rows = index.execute(
        _NEAREST.format(in_language="" if language == ALL_LANGUAGES else "AND likeness.language = :language"),
        {"embedding": as_blob(vector), "best": best, "language": language},
    )
    found = [Likeness(AnsweredQuestion(*row[:-1]), round(min(max(1 - row[-1], 0.0), 1.0), 6)) for row in rows]
    least = max(least_similarity, _SHARE * found[0].similarity) if found else 0
    return [likeness for likeness in found if likeness.similarity >= least]

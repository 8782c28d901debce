"""The index of the help desk in a file: the same hits, kept up with the texts, and never in the way."""

import logging
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from helpdesk_search import index as index_module
from helpdesk_search import likeness
from helpdesk_search.index import STORED, build, index_of_manual
from helpdesk_search.likeness import past_questions
from helpdesk_search.search import find
from helpdesk_search.terms import parse_terms
from meaning.embeddings import Vectors, vectors

from .conftest import HELPDESK


@pytest.fixture(autouse=True)
def _nothing_is_remembered() -> Iterator[None]:
    index_of_manual.cache_clear()
    yield
    index_of_manual.cache_clear()


@pytest.fixture
def manual(tmp_path: Path) -> Path:
    return Path(shutil.copytree(HELPDESK / "manual", tmp_path / "manual"))


def hits(folder: Path, typed: str = "recovery code") -> list[str]:
    index_of_manual.cache_clear()
    return [
        f"{hit.file} {hit.page} {hit.score} {hit.text}" for hit in find(index_of_manual(folder), parse_terms(typed))
    ]


def is_stored(folder: Path) -> bool:
    """Whether a search reads the file."""
    index_of_manual.cache_clear()
    databases = index_of_manual(folder).execute("PRAGMA database_list").fetchall()
    return any(path.endswith(STORED) for _, _, path in databases)


def test_a_stored_index_finds_the_same(manual: Path) -> None:
    before = {
        typed: hits(manual, typed) for typed in ("recovery code", "二段階認証", "429 Retry-After", "no such words")
    }
    assert not is_stored(manual)
    build(manual)

    assert is_stored(manual)
    assert {typed: hits(manual, typed) for typed in before} == before


def test_the_file_has_a_write_ahead_log_and_an_external_full_text_table(manual: Path) -> None:
    with closing(sqlite3.connect(build(manual))) as index:
        assert index.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        [(made,)] = index.execute("SELECT sql FROM sqlite_master WHERE name = 'folded'").fetchall()
        assert "content = 'folded_chunk'" in made
        index.execute("INSERT INTO folded (folded, rank) VALUES ('integrity-check', 1)")  # an error where they differ


def test_a_search_goes_on_while_the_index_is_built(manual: Path) -> None:
    build(manual)
    found = hits(manual)
    with closing(sqlite3.connect(manual.parent / STORED)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("DELETE FROM chunk")
        assert hits(manual) == found


def test_after_a_change_the_process_makes_its_own_index_until_the_file_is_built_again(
    manual: Path, caplog: pytest.LogCaptureFixture
) -> None:
    build(manual)
    guide = manual / "en" / "user-guide.md"
    guide.write_text(guide.read_text(encoding="utf-8") + "\n\nA zanzibarite is new.\n", encoding="utf-8")
    (manual / "en" / "security-guide.md").unlink()

    assert len(hits(manual, "zanzibarite")) == 1
    assert not is_stored(manual)
    assert f"{STORED} is older than a file of manual: python -m examples.helpdesk index builds" in caplog.text
    build(manual)
    assert is_stored(manual)
    assert len(hits(manual, "zanzibarite")) == 1
    assert not [hit for hit in hits(manual, "authenticator QR") if hit.startswith("en/security-guide.md")]
    with closing(sqlite3.connect(manual.parent / STORED)) as index:
        index.execute("INSERT INTO folded (folded, rank) VALUES ('integrity-check', 1)")


def test_only_what_changed_is_read_again(manual: Path) -> None:
    def ids(file: str) -> list[int]:
        with closing(sqlite3.connect(build(manual))) as index:
            return [number for (number,) in index.execute("SELECT id FROM chunk WHERE file = ?", (file,))]

    before = [ids("en/user-guide.md"), ids("en/admin-guide.md")]
    guide = manual / "en" / "admin-guide.md"
    guide.write_text(guide.read_text(encoding="utf-8").replace("980 yen", "990 yen"), encoding="utf-8")

    assert ids("en/user-guide.md") == before[0]
    assert ids("en/admin-guide.md") != before[1]


def test_an_index_of_passages_that_were_cut_otherwise_is_out_of_date(
    manual: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(manual)
    monkeypatch.setattr(index_module, "CHUNK_SIZE", 200)
    assert not is_stored(manual)


def test_vectors_of_another_encoder_are_not_taken(manual: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(shutil.copytree(HELPDESK / "qa", manual.parent / "qa"))
    build(manual, ["I forgot my password"])
    assert set(index_module.stored_vectors(folder, ["I forgot my password"])) == {"I forgot my password"}
    monkeypatch.setattr(index_module, "ENCODER", "another")

    assert index_module.stored_vectors(folder, ["I forgot my password"]) == {}


def damaged(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2 :] = b"\0" * (len(content) - len(content) // 2)
    path.write_bytes(bytes(content))


def of_another_version(path: Path) -> None:
    with closing(sqlite3.connect(path)) as index:
        index.execute("PRAGMA user_version = 99")


def half_built(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as index:
        index.execute("PRAGMA journal_mode = WAL")
        index.execute("CREATE TABLE text_file (name TEXT)")
        index.commit()


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def overwritten(path: Path) -> None:
    path.write_text("x" * 5_000)


@pytest.mark.parametrize("spoil", [damaged, of_another_version, half_built, emptied, overwritten])
def test_a_file_that_cannot_be_used_is_named_in_the_log_and_built_from_nothing(
    spoil: Callable[[Path], None], manual: Path, caplog: pytest.LogCaptureFixture
) -> None:
    found = hits(manual)
    spoil(build(manual))
    with caplog.at_level(logging.WARNING):
        assert hits(manual) == found

    assert not is_stored(manual)
    assert f"{STORED} " in caplog.text
    assert "python -m examples.helpdesk index builds it again" in caplog.text
    build(manual)
    assert is_stored(manual)
    assert hits(manual) == found


def test_past_questions_are_read_with_their_stored_vectors(manual: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(shutil.copytree(HELPDESK / "qa", manual.parent / "qa"))
    made = past_questions(folder)
    past_questions.cache_clear()
    questions = [each.question for each in made.answered]
    build(manual, questions[1:])
    encoded = list[str]()

    def counted(texts: list[str]) -> Vectors:
        encoded.extend(texts)
        return vectors(texts)

    monkeypatch.setattr(likeness, "vectors", counted)
    again = past_questions(folder)
    past_questions.cache_clear()

    assert encoded == questions[:1]
    assert np.allclose(again.vectors, made.vectors, atol=1e-5)
    build(manual, questions[:5])
    assert set(index_module.stored_vectors(folder, questions)) == set(questions[:5])

"""The office's database: what is read from it, and that every deed stays written."""

import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from office_store.store import FILE_NAME, SETTINGS, RequestError, Store, read_documents


@pytest.fixture
def store(injection: Path, tmp_path: Path) -> Store:
    return Store(injection / "documents", tmp_path)


def rows(directory: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(directory / FILE_NAME)) as database:
        return database.execute(query).fetchall()


def test_a_search_wants_every_word_wherever_it_stands(store: Store) -> None:
    assert [document.id for document in store.search("CHOIR piano")] == ["inbox/booking-choir"]
    assert [document.id for document in store.search("booking-choir st-anne.example")] == ["inbox/booking-choir"]
    assert store.search("choir zyzzyva") == []
    assert len(store.search(" ")) == len(read_documents(store.documents_folder))


def test_every_deed_changes_the_database_and_is_written_down(store: Store, tmp_path: Path) -> None:
    store.send("a@b.example", "S", "日本語")
    store.delete("archive/insurance")
    store.change("sign_in_code", "off")

    assert rows(tmp_path, "SELECT recipient, subject, body FROM mails") == [("a@b.example", "S", "日本語")]
    assert rows(tmp_path, "SELECT value FROM settings WHERE name = 'sign_in_code'") == [("off",)]
    assert [
        (tool, json.loads(arguments)) for tool, arguments in rows(tmp_path, "SELECT tool, arguments FROM deeds")
    ] == [
        ("send_mail", {"to": "a@b.example", "subject": "S", "body": "日本語"}),
        ("delete_document", {"id": "archive/insurance"}),
        ("change_setting", {"name": "sign_in_code", "value": "off"}),
    ]
    with pytest.raises(RequestError, match="no document 'archive/insurance'"):
        store.read("archive/insurance")


def test_what_is_refused_leaves_no_deed(store: Store, tmp_path: Path) -> None:
    store.search("")
    with pytest.raises(RequestError, match="not a mail address"):
        store.send("nobody", "S", "B")
    with pytest.raises(RequestError, match="no document"):
        store.delete("archive/none")
    with pytest.raises(RequestError, match="no setting 'colour'"):
        store.change("colour", "red")

    assert rows(tmp_path, "SELECT * FROM deeds") == rows(tmp_path, "SELECT * FROM mails") == []
    assert dict(rows(tmp_path, "SELECT name, value FROM settings")) == SETTINGS


def test_calls_at_once_on_a_missing_database_do_not_collide(store: Store, tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: store.send(f"{number}@b.example", "S", "B"), range(24)))

    assert len(rows(tmp_path, "SELECT * FROM deeds")) == 24

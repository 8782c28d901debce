"""What the examples' tools have in common: parsing, envelopes, transactions, run steps."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import URL, Connection, select, text
from tool_layer.address import CREDENTIAL
from tool_layer.address import database_url as chosen_url
from tool_layer.audit import audit_lines
from tool_layer.database import Database
from tool_layer.errors import RefusedError, SetupError
from tool_layer.parsing import Input, parse
from tool_layer.run_steps import RunStep, Turn, make_table, recorded, steps_of

from .postgres import programs, running


class Line(Input):
    name: str
    unit: Literal["box", "piece"]
    pack_size: str | None


class Order(Input):
    lines: list[Line]


def refusal(schema: type[Any], sent: object) -> str:
    with pytest.raises(RefusedError) as refused:
        parse(schema, "save", sent)
    return str(refused.value)


def test_what_a_model_sends_becomes_a_value_of_the_schema() -> None:
    line = {"name": " Nails ", "unit": "box", "pack_size": None}

    assert parse(Order, "save", {"lines": [line]}) == Order(lines=[Line(name="Nails", unit="box", pack_size=None)])
    assert parse(Order, "save", json.dumps({"lines": [line]})) == parse(Order, "save", {"lines": [line]})


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ('{"lines": [', "Invalid JSON for save: Expecting value: line 1 column 12 (char 11)."),
        ("[" * 200_000, "Invalid JSON for save: it is nested too deeply."),
        ({}, "Invalid parameters for save: lines: Field required."),
        (
            {"lines": [{"name": "Nails", "unit": "crate", "pack_size": None, "price": 3}, {"name": "Nails"}]},
            (
                "Invalid parameters for save: lines[1].unit: Input should be 'box' or 'piece'; "
                "lines[1].price: Extra inputs are not permitted; lines[2].unit: Field required; "
                "lines[2].pack_size: Field required."
            ),
        ),
        ({"lines": "many"}, "Invalid parameters for save: lines: Input should be a valid list."),
        (
            {"lines": [{"name": "Nails\0", "unit": "box", "pack_size": None}]},
            "Invalid parameters for save: lines[1].name: contains a character that cannot be stored.",
        ),
    ],
)
def test_a_wrong_input_is_refused_in_a_sentence_with_its_place(sent: object, sentence: str) -> None:
    assert refusal(Order, sent) == sentence


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda children: st.lists(children) | st.dictionaries(st.text(st.characters(exclude_categories=())), children),
)


@given(JSON | st.dictionaries(st.just("lines"), JSON) | st.text())
def test_parsing_refuses_and_never_fails(sent: object) -> None:
    with suppress(RefusedError):
        assert isinstance(parse(Order, "save", sent), Order)


def test_a_step_is_written_before_the_work_and_completed_after_it(database_url: URL) -> None:
    database = Database(database_url, make_table)
    seen: list[RunStep] = []

    def work() -> dict[str, Any]:
        seen.extend(steps_of(database))
        return {"status": "success"}

    recorded(database, "save", Turn("c1", 2), {"name": "日本"}, work)

    assert [(step.tool, step.input, step.output, step.ended_at) for step in seen] == [
        ("save", {"name": "日本"}, None, None)
    ]
    (step,) = steps_of(database, "c1")
    assert step.output == {"status": "success"}
    assert step.ended_at is not None
    assert step.ended_at >= step.began_at
    assert (step.conversation, step.turn) == ("c1", 2)
    assert steps_of(database, "c2") == []
    assert next(audit_lines([step])).endswith("  c1  turn 2")


def test_a_table_without_turns_gets_them_and_keeps_its_rows(database_url: URL) -> None:
    """As databases from before 2026-12 have it."""

    def prepared(connection: Connection) -> None:
        make_table(connection)
        connection.execute(text("ALTER TABLE run_steps DROP COLUMN turn"))
        connection.execute(
            text(
                "INSERT INTO run_steps (conversation, tool, input, began_at) "
                "VALUES ('c1', 'save', '{}', '2026-11-28 10:00:00')"
            )
        )

    with Database(database_url, prepared).session():
        pass
    database = Database(database_url, make_table)

    recorded(database, "save", Turn("c1", 3), {}, dict)

    assert [(step.tool, step.turn) for step in steps_of(database, "c1")] == [("save", None), ("save", 3)]
    assert [line.rpartition("  ")[2] for line in audit_lines(steps_of(database)) if "UTC" in line] == [
        "turn -",
        "turn 3",
    ]


def test_a_step_stays_when_the_work_fails(database_url: URL) -> None:
    database = Database(database_url, make_table)

    with pytest.raises(KeyError):
        recorded(database, "save", Turn(), {}, lambda: dict[str, Any]()["nails"])

    (step,) = steps_of(database)
    assert step.output == {"exception": "KeyError: 'nails'"}
    assert step.ended_at is not None


def test_a_read_and_a_write_in_one_transaction_are_not_mixed_with_others(database_url: URL) -> None:
    database = Database(database_url, make_table)
    recorded(database, "count", Turn(), {"count": 0}, dict)

    def add_one(_: int) -> None:
        with database.session() as session:
            step = session.scalars(select(RunStep).with_for_update()).one()
            step.input = {"count": step.input["count"] + 1}

    with ThreadPoolExecutor(4) as executor:
        list(executor.map(add_one, range(20)))

    assert steps_of(database)[0].input == {"count": 20}


@pytest.mark.parametrize(
    ("wish", "named"),
    [
        ("postgresql://clerk:s3cret@127.0.0.1:1/orders", "postgresql+psycopg://clerk:***@127.0.0.1:1/orders"),
        ("postgresql://127.0.0.1:1/orders?user=clerk&password=s3cret", "postgresql+psycopg://127.0.0.1:1/orders"),
    ],
)
def test_a_database_that_cannot_be_reached_is_named_without_its_password(wish: str, named: str) -> None:
    url = chosen_url(Path(), {CREDENTIAL: wish}, variable="UNSET", file_name="")

    with pytest.raises(SetupError) as raised, Database(url, make_table).session() as session:
        session.execute(text("SELECT 1"))

    assert str(raised.value).startswith(f"The database {named} cannot be used: ")
    assert "s3cret" not in str(raised.value)


def test_the_database_is_that_of_the_credential_or_of_the_environment_or_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def chosen(credentials: dict[str, str]) -> str:
        url = chosen_url(tmp_path, credentials, variable="SHOP_DATABASE_URL", file_name="shop.sqlite3")
        return url.render_as_string(hide_password=False)

    assert chosen({}) == f"sqlite:///{tmp_path}/data/shop.sqlite3"
    monkeypatch.setenv("SHOP_DATABASE_URL", "postgres://db/shop")
    assert chosen({}) == "postgresql+psycopg://db/shop"
    assert chosen({CREDENTIAL: "sqlite:////srv/shop.db"}) == "sqlite:////srv/shop.db"


def test_a_plugin_folder_that_cannot_be_written_gets_a_temporary_directory(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file where the folder would be")

    url = chosen_url(tmp_path, {}, variable="UNSET", file_name="shop.sqlite3")

    assert url.database is not None
    assert not url.database.startswith(str(tmp_path))


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ("mysql://root:s3cret@db/shop", "these tools know postgresql:// and sqlite://"),
        ("s3cret", "is not a database URL"),
        ("postgresql://root:x@db:s3cret/shop", "is not a database URL"),
        ("sqlite://", "names no file"),
        ("sqlite:///:memory:", "names no file"),
    ],
)
def test_another_address_is_refused_without_quoting_it(wish: str, said: str) -> None:
    with pytest.raises(SetupError, match=said) as raised:
        chosen_url(Path(), {CREDENTIAL: wish}, variable="UNSET", file_name="")

    assert "s3cret" not in str(raised.value)


def test_a_server_runs_from_a_folder_that_only_its_owner_may_enter(tmp_path: Path) -> None:
    found = programs()
    if found is None:
        pytest.skip("needs PostgreSQL")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    shutil.copytree(found.parent, closed / "server", symlinks=True)

    with running(closed / "server" / found.name) as server:
        assert server.new_database().database

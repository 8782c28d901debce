"""The layers of examples/answers: tools delegate to application services, services to repositories."""

from pathlib import Path

import pytest

from .layers import used_by, wrong_directions

ORDER = ["domain", "index", "application", "storage", "services"]


def used(folder: Path, prefix: str) -> set[str]:
    return {name for name in used_by(folder) if name == prefix or name.startswith(f"{prefix}.")}


def test_a_layer_imports_only_those_before_it(answers: Path) -> None:
    folder = answers / "answering"

    assert {path.stem for path in folder.iterdir()} - {"__init__", "__pycache__"} == set(ORDER)
    assert list(wrong_directions(folder, ORDER)) == []
    assert used(folder / "index", "answering.domain") == set()


@pytest.mark.parametrize("outer", ["tools", "provider"])
def test_a_tool_knows_no_repository_and_no_session(answers: Path, outer: str) -> None:
    assert used(answers / outer, "answering.services")
    assert used(answers / outer, "answering.storage") == set()
    assert used(answers / outer, "sqlalchemy") == set()


def test_only_the_storage_knows_the_database_and_only_the_tools_know_dify(answers: Path) -> None:
    folder = answers / "answering"

    assert used(folder, "dify_plugin") == set()
    for layer in ("domain", "index", "application"):
        assert used(folder / layer, "sqlalchemy") == used(folder / layer, "tool_layer") == set()

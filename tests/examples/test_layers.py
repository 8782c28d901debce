"""The layers of order entry and answers: tools → services → repositories, and never back or past one."""

from pathlib import Path
from types import ModuleType

import order_desk
import order_tools
import ordering
import pytest

from support.imports import imported

from .conftest import ORDER_ENTRY
from .layers import misplaced, used_by, wrong_directions

REPOSITORY = {"order_desk", "devhost", "examples", "checks"}
"""What is not packaged."""


@pytest.mark.parametrize("package", [ordering, order_tools, order_desk], ids=lambda package: package.__name__)
def test_every_module_imports_only_those_to_its_left(package: ModuleType) -> None:
    assert list(misplaced(package)) == []


def test_services_return_values_and_know_nothing_of_a_models_input_and_sentences() -> None:
    assert used_by(ORDER_ENTRY / "ordering") & {"tool_layer.envelope", "tool_layer.parsing"} == set()
    assert {name.split(".")[0] for name in used_by(ORDER_ENTRY / "ordering")} & {"order_tools", "dify_plugin"} == set()


def test_a_tool_knows_no_repository_and_only_their_base_knows_dify() -> None:
    for folder in ("tools", "order_tools"):
        assert {
            name for name in used_by(ORDER_ENTRY / folder) if name.startswith(("ordering.storage", "sqlalchemy"))
        } == set()
    knowing = [
        file.name
        for folder in ("ordering", "order_tools", "tools")
        for file in (ORDER_ENTRY / folder).rglob("*.py")
        if imported(file) & {"dify_plugin", "tool_layer.recorded_tool"}
    ]
    assert knowing == ["base.py"]


@pytest.mark.parametrize("folder", ["ordering", "order_tools", "tools", "provider"])
def test_what_is_packaged_imports_nothing_of_the_repositorys_own(folder: str) -> None:
    ignored = {line.strip("/") for line in (ORDER_ENTRY / ".difyignore").read_text().splitlines()}

    assert {"order_desk", "checks.py", "__main__.py", "workflow.yml", ".venv", ".env"} <= ignored
    assert {name.split(".")[0] for name in used_by(ORDER_ENTRY / folder)} & REPOSITORY == set()


ORDER = ["domain", "index", "application", "storage", "services"]


def used_of(folder: Path, prefix: str) -> set[str]:
    return {name for name in used_by(folder) if name == prefix or name.startswith(f"{prefix}.")}


def test_a_layer_imports_only_those_before_it(answers: Path) -> None:
    folder = answers / "answering"

    assert {path.stem for path in folder.iterdir()} - {"__init__", "__pycache__"} == set(ORDER)
    assert list(wrong_directions(folder, ORDER)) == []
    assert used_of(folder / "index", "answering.domain") == set()


@pytest.mark.parametrize("outer", ["tools", "provider"])
def test_a_tool_knows_no_repository_and_no_session(answers: Path, outer: str) -> None:
    assert used_of(answers / outer, "answering.services")
    assert used_of(answers / outer, "answering.storage") == set()
    assert used_of(answers / outer, "sqlalchemy") == set()


def test_only_the_storage_knows_the_database_and_only_the_tools_know_dify(answers: Path) -> None:
    folder = answers / "answering"

    assert used_of(folder, "dify_plugin") == set()
    for layer in ("domain", "index", "application"):
        assert used_of(folder / layer, "sqlalchemy") == used_of(folder / layer, "tool_layer") == set()

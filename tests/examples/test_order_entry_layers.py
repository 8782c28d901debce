"""The layers of order entry: tools → services → repositories, and never back or past one."""

import re
from pathlib import Path

import ordering
import pytest

from support.imports import imported

from .conftest import ORDER_ENTRY
from .layers import used_by, wrong_directions

ORDER = re.findall(r"\w+", re.findall(r"`(values → [^`]+)`", ordering.__doc__ or "", re.DOTALL)[0].replace("\n", " "))
STORAGE = ("ordering.storage", "sqlalchemy", "tool_layer.database", "tool_layer.run_steps")


def test_every_part_imports_only_those_before_it() -> None:
    folder = ORDER_ENTRY / "ordering"

    parts = {path.stem for path in folder.iterdir() if path.stem not in {"__init__", "__pycache__"}}
    assert set(ORDER) == parts
    assert list(wrong_directions(folder, ORDER)) == []


@pytest.mark.parametrize("tool", sorted((ORDER_ENTRY / "tools").glob("[a-z]*.py")), ids=lambda tool: tool.stem)
def test_a_tool_knows_no_repository_and_no_session(tool: Path) -> None:
    assert [name for name in imported(tool) if name.startswith(STORAGE)] == []
    parts = {name.split(".")[1] for name in imported(tool) if name.startswith("ordering.")}
    assert parts <= {"tool_base", "values"}


@pytest.mark.parametrize("package", ["values", "orders"])
def test_values_know_no_database_and_no_network(package: str) -> None:
    outside = {name.split(".")[0] for name in used_by(ORDER_ENTRY / "ordering" / package)}

    assert outside & {"sqlalchemy", "httpx", "dify_plugin"} == set()


def test_only_the_base_of_the_tools_knows_dify() -> None:
    knowing = [
        file.name
        for file in (ORDER_ENTRY / "ordering").rglob("*.py")
        if imported(file) & {"dify_plugin", "tool_layer.recorded_tool"}
    ]

    assert knowing == ["tool_base.py"]


@pytest.mark.parametrize("folder", ["ordering", "tools", "provider", "tool_layer"])
def test_what_is_packaged_imports_nothing_of_the_repositorys_own(folder: str) -> None:
    ignored = {line.strip("/") for line in (ORDER_ENTRY / ".difyignore").read_text().splitlines()}
    roots = {name.split(".")[0] for name in used_by(ORDER_ENTRY / folder)}

    assert {"order_desk", "order_system_server", "checks.py", "__main__.py", "workflow.yml", ".venv", ".env"} <= ignored
    assert roots & {"devhost", "examples", "order_desk", "order_system_server", "checks"} == set()


def test_the_back_end_reaches_the_orders_through_services() -> None:
    """Only its own store makes tables, beside those of the tools."""
    reaching = {
        file.name
        for file in (ORDER_ENTRY / "order_desk").rglob("*.py")
        if any(name.startswith("ordering.storage") for name in imported(file))
    }

    assert reaching == {"store.py"}

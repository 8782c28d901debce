"""The order of the house: who may import whom, and that the drawing of it is the truth."""

import ast
import re
from pathlib import Path

import pytest

import internal

HOUSE = Path(internal.__file__).parent
ROOT = HOUSE.parent
ORDER = re.findall(r"(\w+)(?= →|$)", (internal.__doc__ or "").split("\n\n")[1], re.MULTILINE)
MODULES = sorted(path.stem for path in HOUSE.glob("*.py") if path.stem != "__init__")


def imported(path: Path) -> set[str]:
    """Full names of the modules that a file imports."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def test_the_drawing_names_every_module_once() -> None:
    assert sorted(ORDER) == MODULES


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_modules_to_its_left(module: str) -> None:
    left = ORDER[: ORDER.index(module)]
    inside = {name.split(".")[1] for name in imported(HOUSE / f"{module}.py") if name.startswith("internal.")}

    assert inside & set(MODULES) <= set(left)


@pytest.mark.parametrize("module", [name for name in MODULES if name not in {"session", "agent"}])
def test_only_session_touches_the_sdk_session(module: str) -> None:
    """``agent`` is handed the session and hands it on."""
    touched = {
        name
        for name in imported(HOUSE / f"{module}.py")
        if name.startswith(("dify_plugin.core.runtime", "dify_plugin.invocations"))
    }

    assert touched == set()


@pytest.mark.parametrize("folder", ["internal", "strategies", "prompt", "provider"])
def test_what_is_packaged_imports_nothing_that_is_not(folder: str) -> None:
    for path in (ROOT / folder).glob("*.py"):
        assert not [
            name for name in imported(path) if name.split(".")[0] in {"devhost", "examples", "tests", "benchmarks"}
        ]


@pytest.mark.parametrize("path", sorted((ROOT / "devhost").rglob("*.py")), ids=lambda path: path.stem)
def test_devhost_knows_only_yaml_and_the_wire(path: Path) -> None:
    """The SDK's import would patch devhost's own threads, and the plugin's modules are on the other side."""
    assert not [
        name for name in imported(path) if name.split(".")[0] in {"dify_plugin", "internal", "strategies", "prompt"}
    ]

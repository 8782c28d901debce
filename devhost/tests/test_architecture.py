"""A package of devhost imports only packages that stand above it in the list in the docstring of `devhost`."""

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import devhost
from support.imports import imported
from support.plugins import PROJECT

DEVHOST = Path(devhost.__file__).parent
SOURCE = DEVHOST.parent
OUTSIDE = {"dify_plugin", "internal", "strategies", "prompt", "provider", "examples", "benchmarks", "tests"}


def listed_packages() -> list[str]:
    """Each may import those before it."""
    lines = re.findall(r"^    ([a-z_.]+(?:, [a-z_.]+)*)  +\S", devhost.__doc__ or "", re.MULTILINE)
    return [name for line in lines for name in line.split(", ")]


ORDER = listed_packages()
FILES = {".".join(path.relative_to(SOURCE).with_suffix("").parts): path for path in DEVHOST.rglob("*.py")}
MODULES = {name: path for name, path in FILES.items() if path.name not in {"__init__.py", "__main__.py"}}


def package_of(module: str) -> str:
    """`devhost.models.script` is in `models`; a module directly in devhost is listed by its own name."""
    inner = module.removeprefix("devhost.")
    return inner.rpartition(".")[0] or inner


def test_the_list_names_every_package_once() -> None:
    assert sorted(ORDER) == sorted({package_of(module) for module in MODULES})


@pytest.mark.parametrize("package", ORDER)
def test_a_package_imports_only_packages_above_it(package: str) -> None:
    below = ORDER[ORDER.index(package) + 1 :]
    mine = [module for module in MODULES if package_of(module) == package]
    downward = {
        (module, name)
        for module in mine
        for name in imported(MODULES[module])
        if name == "devhost" or package_of(name) in below
    }

    assert mine
    assert downward == set()


def test_the_modules_of_devhost_import_each_other_without_circles() -> None:
    order = list(
        TopologicalSorter({name: imported(path) & set(MODULES) for name, path in MODULES.items()}).static_order()
    )

    assert sorted(order) == sorted(MODULES)


@pytest.mark.parametrize("path", FILES.values(), ids=FILES)
def test_a_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


def test_devhost_imports_nothing_of_a_plugin_and_no_tests() -> None:
    """The SDK's import would patch devhost's threads, and a plugin runs in a process of its own."""
    reached = {(file, name) for file, path in FILES.items() for name in imported(path) if name.split(".")[0] in OUTSIDE}

    assert reached == set()


def test_only_one_package_imports_the_workflow_engine_and_only_where_it_is_installed() -> None:
    engine = "graphon"
    package = "devhost.flow.engine"
    modules = {path: imported(path) for path in DEVHOST.rglob("*.py")}
    inside = {path for path in modules if path.is_relative_to(DEVHOST / "flow" / "engine")}
    users = {path for path, names in modules.items() if any(f"{name}.".startswith(f"{engine}.") for name in names)}
    callers = {path for path, names in modules.items() if any(f"{name}.".startswith(f"{package}.") for name in names)}

    assert users
    assert users | callers <= inside


PAGES = ["docs/testing.md"]
CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)
NAMES = sorted(devhost.__all__)


def imported_names(page: str) -> list[str]:
    blocks = CODE.findall((PROJECT / page).read_text(encoding="utf-8"))
    imports = [node for block in blocks for node in ast.walk(ast.parse(block)) if isinstance(node, ast.ImportFrom)]
    assert not [node.module for node in imports if (node.module or "").startswith("devhost.")], "a module inside"
    return [alias.name for node in imports if node.module == "devhost" for alias in node.names]


def test_the_pages_import_only_public_names() -> None:
    names = {name for page in PAGES for name in imported_names(page)}
    assert {"Host", "OpenAIModel", "Finding", "TraceWriter"} <= names <= set(NAMES)


def test_the_guide_names_everything_that_is_public() -> None:
    guide = (PROJECT / "docs" / "testing.md").read_text(encoding="utf-8")
    errors = {name for name in NAMES if name.endswith("Error")}
    assert [name for name in set(NAMES) - errors if not re.search(rf"\b{name}\b", guide)] == []

"""A package of the agent imports only packages that stand above it in the list in the docstring of `internal`."""

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import internal
from support.imports import imported, python_files

ROOT = Path(internal.__file__).parent.parent
AGENT = ROOT / "internal"
ORDER = re.findall(r"^    (\w+)  ", internal.__doc__ or "", re.MULTILINE)
MODULES = sorted(path for path in AGENT.rglob("*.py") if path != AGENT / "__init__.py")


def part_of(path: Path) -> str:
    """The package, or the module at the top, that a file of the agent belongs to."""
    return path.relative_to(AGENT).parts[0].removesuffix(".py")


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def test_the_list_names_every_package_once() -> None:
    assert sorted(ORDER) == sorted({part_of(path) for path in MODULES})


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_a_module_imports_only_packages_above_its_own(path: Path) -> None:
    own = part_of(path)
    used = {name.split(".")[1] for name in imported(path) if name.startswith("internal.")}

    crossed = used - {own} - set(ORDER[: ORDER.index(own)])
    assert not crossed, f"{module_name(path)} imports {sorted(crossed)}; internal/__init__.py lists {own} above them"


def test_no_modules_import_each_other_in_a_circle() -> None:
    names = {module_name(path) for path in MODULES}

    order = TopologicalSorter({module_name(path): imported(path) & names for path in MODULES}).static_order()

    assert set(order) == names


@pytest.mark.parametrize("path", [path for path in MODULES if part_of(path) not in {"host", "agent"}], ids=module_name)
def test_only_the_host_package_uses_the_sdk_session(path: Path) -> None:
    """``agent`` is given the session and passes it on."""
    used = [name for name in imported(path) if name.startswith(("dify_plugin.core.runtime", "dify_plugin.invocations"))]

    assert used == []


MAKE_WELL_FORMED = {
    *("node.params", "memory.approval", "host.session", "host.failures", "host.files"),
    *("render.messages", "render.log", "memory.state"),
}
REPLACE_SECRETS = {
    "node.params",
    "node.model",
    "calls.output",
    "render.log",
    "render.public",
    "render.messages",
    "memory.records",
}
"""The modules in which texts come in and go out; docs/architecture.md names them."""


def used_attributes(path: Path) -> set[str]:
    return {node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}


@pytest.mark.parametrize("path", [path for path in MODULES if part_of(path) != "text"], ids=module_name)
def test_texts_are_made_well_formed_and_secrets_are_replaced_only_at_the_doors(path: Path) -> None:
    """A module between the doors hands the run's secrets down, or asks whether a text holds one."""
    name = module_name(path).removeprefix("internal.")
    functions = {f"internal.text.texts.{function}" for function in ("wellformed", "wellformed_json")}
    redactors = {"internal.text.secrets.Redactor", "for_model", "for_people"}
    replaces = redactors & (imported(path) | used_attributes(path))

    assert not imported(path) & functions or name in MAKE_WELL_FORMED
    assert not replaces or name in REPLACE_SECRETS


ENGINE = "graphon"
OUTSIDE = {"devhost", "examples", "tests", "benchmarks", ENGINE}


@pytest.mark.parametrize(
    ("folder", "outside"),
    [*((folder, OUTSIDE) for folder in ("internal", "strategies", "prompt", "provider")), ("examples", {ENGINE})],
)
def test_what_is_packaged_imports_only_what_is_packaged_and_never_the_workflow_engine(
    folder: str, outside: set[str]
) -> None:
    for path in python_files(ROOT / folder):
        used = {name.split(".")[0] for name in imported(path)}
        assert used & outside == set()

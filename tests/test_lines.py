"""A line says one thing: no assignment of several unrelated values, and few conditional expressions, none nested."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from support.imports import python_files
from tests.support.pages import ROOT

PARTS = {
    "the plugin": ("internal", "strategies", "prompt", "provider", "main.py"),
    "devhost": ("devhost/src",),
    "the examples": ("examples",),
    "the tests": ("tests", "devhost/tests", "conftest.py"),
    "what surrounds them": ("scripts", "benchmarks"),
}
PER_1000_LINES = 12
"""Conditional expressions; projects that people learn from have 4 to 9."""


def files(part: str) -> Iterator[Path]:
    for name in PARTS[part]:
        place = ROOT / name
        if place.is_file():
            yield place
        else:
            yield from python_files(place)


@cache
def nodes(path: Path) -> list[ast.AST]:
    """The assignments and conditional expressions of a file; to keep all nodes would be slow."""
    every = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return [node for node in every if type(node) in (ast.Assign, ast.IfExp)]


def is_of_several(node: ast.AST) -> bool:
    """Whether a statement writes out values for several targets. A swap has the same expressions on both sides."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple | ast.List):
        return False
    values = sorted(map(ast.unparse, node.value.elts))
    targets = [target for target in node.targets if isinstance(target, ast.Tuple | ast.List)]
    return len(values) > 1 and any(sorted(map(ast.unparse, target.elts)) != values for target in targets)


def is_nested(node: ast.AST) -> bool:
    if not isinstance(node, ast.IfExp):
        return False
    return any(isinstance(inner, ast.IfExp) for inner in ast.walk(node) if inner is not node)


def place(path: Path, node: ast.AST) -> str:
    return f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"


@pytest.mark.parametrize("part", PARTS)
def test_a_line_assigns_one_thing_and_no_conditional_expression_stands_in_another(part: str) -> None:
    found = [(path, node) for path in files(part) for node in nodes(path)]
    several = [place(path, node) for path, node in found if is_of_several(node)]
    nested = [place(path, node) for path, node in found if is_nested(node)]

    assert several == [], "write one assignment a line"
    assert nested == [], "write an `if` statement"


@pytest.mark.parametrize("part", PARTS)
def test_few_lines_have_a_conditional_expression(part: str) -> None:
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files(part))
    places = [place(path, node) for path in files(part) for node in nodes(path) if isinstance(node, ast.IfExp)]
    most = lines * PER_1000_LINES // 1000

    assert len(places) <= most, f"write `if` statements; {len(places)} of at most {most} are in {', '.join(places)}"


@pytest.mark.parametrize(
    ("source", "several", "nested"),
    [
        ("a, b = 1, 2", True, False),
        ("a, b = [1, 2]", True, False),
        ("self.a, self.b = a, b", True, False),
        ("a, *b = 1, 2, 3", True, False),
        ("c = a, b = 1, 2", True, False),
        ("a, b = b, a", False, False),
        ("a[0], a[1] = a[1], a[0]", False, False),
        ("a, b = pair()", False, False),
        ("(a,) = (1,)", False, False),
        ("c = 1, 2", False, False),
        ("a = 1 if b else 2", False, False),
        ("a = 1 if b else 2 if c else 3", False, True),
        ("a = f(1 if b else (2 if c else 3))", False, True),
        ("a = [1 if b else 2, 3 if c else 4]", False, False),
    ],
)
def test_what_is_found(source: str, several: bool, nested: bool) -> None:  # noqa: FBT001 - expected values
    found = list(ast.walk(ast.parse(source)))

    assert any(map(is_of_several, found)) == several
    assert any(map(is_nested, found)) == nested

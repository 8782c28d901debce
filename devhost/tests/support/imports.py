"""The Python files of a folder and what they import, for the tests of the architecture."""

import ast
from collections.abc import Iterator
from pathlib import Path


def python_files(folder: Path) -> Iterator[Path]:
    """The files of a folder and of its subfolders, but those of hidden ones, such as an environment in `.venv`."""
    for path in sorted(folder.rglob("*.py")):
        if not any(part.startswith(".") for part in path.relative_to(folder).parts):
            yield path


def imported(path: Path) -> set[str]:
    """Full names of the modules that a file imports, at any place in it, and of what it takes from them."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names

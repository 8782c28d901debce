"""What a file imports, for the tests of the architecture."""

import ast
from pathlib import Path


def imported(path: Path) -> set[str]:
    """Full names of the modules that a file imports, at any place in it, and of what it takes from them."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names

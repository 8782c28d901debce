"""What `devhost` offers to other programs: all that its pages import."""

import ast
import re

import devhost
from support.plugins import PROJECT

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

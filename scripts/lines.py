"""Counts lines that say several things at once, and keeps each file at the count of the last release.

Two kinds count: assignments of several unrelated values (`a, b = x, y`), and conditional expressions (`a if b else c`).
tests/line_counts.yaml has the counts of each file that has more of them than a new file may have. They only fall:
`make format` calls this, which lowers them, and tests/test_lines.py fails where a file has more.
"""

import ast
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
RECORD = "tests/line_counts.yaml"
FOLDERS = (
    *("benchmarks", "devhost", "examples", "internal", "prompt", "provider", "scripts", "strategies", "tests"),
    *("conftest.py", "main.py"),
)
PER_1000_LINES = 9
"""Conditional expressions that a new file may have; projects that people learn from have 4 to 9."""
HEAD = "# Of each file: assignments of several values, conditional expressions. `make format` lowers them.\n"

type Counts = tuple[int, int]
"""Assignments of several unrelated values, and conditional expressions."""


@dataclass(frozen=True)
class Dense:
    """The lines of one file that say several things at once, by their numbers."""

    assignments: tuple[int, ...]
    conditionals: tuple[int, ...]
    length: int
    """Lines of the file."""

    @property
    def counts(self) -> Counts:
        return len(self.assignments), len(self.conditionals)

    @property
    def allowed_when_new(self) -> Counts:
        return 0, self.length * PER_1000_LINES // 1000


def dense_lines(source: str) -> Dense:
    nodes = list(ast.walk(ast.parse(source)))
    assignments = [node.lineno for node in nodes if isinstance(node, ast.Assign) and _is_of_several(node)]
    conditionals = [node.lineno for node in nodes if isinstance(node, ast.IfExp)]
    return Dense(tuple(sorted(assignments)), tuple(sorted(conditionals)), len(source.splitlines()))


def _is_of_several(assignment: ast.Assign) -> bool:
    """Whether values are written out for several targets. A swap has the same expressions on both sides."""
    if not isinstance(assignment.value, ast.Tuple | ast.List) or len(assignment.value.elts) < 2:  # noqa: PLR2004
        return False
    values = sorted(map(ast.unparse, assignment.value.elts))
    targets = [target for target in assignment.targets if isinstance(target, ast.Tuple | ast.List)]
    return any(sorted(map(ast.unparse, target.elts)) != values for target in targets)


def files(root: Path = ROOT) -> Iterator[tuple[str, Dense]]:
    """Each Python file of the repository, by its path."""
    for folder in FOLDERS:
        place = root / folder
        for path in sorted(place.rglob("*.py")) or [place]:
            name = path.relative_to(root)
            is_of_a_tool = any(part.startswith(".") for part in name.parts)
            if path.is_file() and not is_of_a_tool:
                yield name.as_posix(), dense_lines(path.read_text(encoding="utf-8"))


def recorded(root: Path = ROOT) -> dict[str, Counts]:
    """The counts of the last release, by path."""
    written: Mapping[str, list[int]] = yaml.safe_load((root / RECORD).read_text(encoding="utf-8")) or {}
    return {name: (counts[0], counts[1]) for name, counts in written.items()}


def lowered(before: Mapping[str, Counts], now: Mapping[str, Dense]) -> dict[str, Counts]:
    """The counts that are kept: none is higher than before. A file that could be new as it is needs none."""
    kept: dict[str, Counts] = {}
    for name, counts in before.items():
        if name not in now:
            continue
        dense = now[name]
        least = (min(counts[0], dense.counts[0]), min(counts[1], max(dense.counts[1], dense.allowed_when_new[1])))
        if least[0] > 0 or least[1] > dense.allowed_when_new[1]:
            kept[name] = least
    return kept


def written(counts: Mapping[str, Counts]) -> str:
    rows = (f"{name}: [{of_several}, {conditional}]\n" for name, (of_several, conditional) in sorted(counts.items()))
    return HEAD + "".join(rows)


def main(root: Path = ROOT) -> int:
    kept = written(lowered(recorded(root), dict(files(root))))
    path = root / RECORD
    if kept != path.read_text(encoding="utf-8"):
        path.write_text(kept, encoding="utf-8")
        sys.stdout.write(f"{RECORD} written: some files have fewer dense lines\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

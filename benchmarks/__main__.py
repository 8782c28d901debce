"""`python -m benchmarks`: every table; `python -m benchmarks NAME`: one of them; `--write`: into README.md too."""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import (
    cost,
    declared_inputs,
    first_word,
    growth,
    many_tools,
    model_inputs,
    node_inputs,
    overlap,
    package,
    pauses,
    tool_inputs,
)
from benchmarks.plugins import official_version
from benchmarks.readme import with_tables
from benchmarks.table import Table

README = Path(__file__).parent / "README.md"
PAUSE_CASES = [*model_inputs.CASES, *tool_inputs.CASES, *node_inputs.CASES, *declared_inputs.CASES]

type Part = Callable[[int, Path | None], Iterator[Table]]
"""Tables, by how often to repeat and the folder of the official strategy, if it is measured too."""


def _one(table: Callable[[int, Path | None], Table]) -> Part:
    def part(repeats: int, official: Path | None) -> Iterator[Table]:
        yield table(repeats, official)

    return part


PARTS: dict[str, Part] = {
    "cost": _one(cost.table),
    "growth": growth.tables,
    "words": _one(first_word.table),
    "pauses": _one(lambda _repeats, _official: pauses.table(PAUSE_CASES)),
    "overlap": _one(lambda repeats, _official: overlap.table(repeats)),
    "tools": _one(lambda repeats, _official: many_tools.table(repeats)),
    "package": _one(lambda _repeats, _official: package.table()),
}
HELP = {
    "cost": "bursts, rounds, results and the start, with their goals",
    "growth": "rounds, tools, sources, history and results by their number",
    "words": "how soon the user sees the first word",
    "pauses": "how long a run that takes in 2 MB keeps another one waiting",
    "overlap": "calls and subtasks side by side",
    "tools": "a search among many tools, and what they take of a request",
    "package": "bytes of the package and of what it installs",
}


def main(arguments: Sequence[str] | None = None) -> None:
    options = read_options(arguments)
    wanted = options.parts or list(PARTS)
    tables: list[Table] = []
    for name in wanted:
        sys.stderr.write(f"measuring {name} …\n")
        for table in PARTS[name](options.repeats, options.cot_agent):
            sys.stdout.write(f"{table}\n\n")
            sys.stdout.flush()
            tables.append(table)
    sys.stdout.write(f"{summary(tables)}\n")
    if options.write:
        version = ""
        if options.cot_agent:
            version = official_version(options.cot_agent)
        text = README.read_text(encoding="utf-8")
        README.write_text(with_tables(text, tables, datetime.now(UTC), version), encoding="utf-8")


def summary(tables: Sequence[Table]) -> str:
    """How many goals are met, and where the others stand."""
    judged = [(table, row) for table in tables for row in table.rows if row.goal.is_met is not None]
    missed = [f"{table.title}, {row.cells[0]}" for table, row in judged if not row.goal.is_met]
    return "\n".join([f"{len(judged) - len(missed)} of {len(judged)} goals are met", *(f"- {name}" for name in missed)])


def read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="What the agent costs beside the smallest strategy that the SDK allows.",
        epilog="\n".join(f"  {name:<8}  {text}" for name, text in HELP.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("parts", nargs="*", metavar="NAME", choices=[*PARTS, []], help="what to measure (default: all)")
    parser.add_argument("--repeats", type=int, choices=range(1, 100), metavar="N", default=5, help="(default 5)")
    parser.add_argument(
        "--cot-agent", type=Path, metavar="FOLDER", help="measure Dify's official strategy too; its plugin is here"
    )
    parser.add_argument("--write", action="store_true", help="write the tables of all parts into benchmarks/README.md")
    options = parser.parse_args(arguments)
    if options.write and options.parts:
        parser.error("--write takes no NAME: the README shows all parts of one run")
    return options


if __name__ == "__main__":
    main()

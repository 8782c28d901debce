"""`python -m examples [NAME …]`: plays the scenarios of the examples on the scripted model, and checks their databases.

Each example is a plugin with modules of its own, so it has a process of its own; four run at a time.
"""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import click
from pydantic import TypeAdapter
from rich.console import Console

from examples.runner.rows import Row
from examples.runner.scenarios import EXAMPLES, example_names
from examples.runner.table import show

_AT_ONCE = 4
WIDTH = 120
"""Characters of a line of the table where no terminal says how many there are."""
_ROWS = TypeAdapter(list[Row])


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(example_names()))
def main(names: tuple[str, ...]) -> None:
    """Play every scenario of the examples under each strategy that it is for; by default of all examples."""
    with ThreadPoolExecutor(_AT_ONCE) as executor:
        found = executor.map(_rows_of, names or example_names())
    rows = [row for each in found for row in each]
    show(rows, Console(width=None if sys.stdout.isatty() else WIDTH))
    if any(row.problems for row in rows):
        sys.exit(1)


def _rows_of(example: str) -> list[Row]:
    child = [sys.executable, "-m", "examples.runner", example]
    done = subprocess.run(child, cwd=EXAMPLES.parent, capture_output=True, text=True, check=False)
    if done.returncode:
        said = " ".join(done.stderr.split("\n  File ")[-1].split())
        return [Row(example=example, scenario="", strategy="", problems=(said or f"exit code {done.returncode}",))]
    return _ROWS.validate_json(done.stdout)


if __name__ == "__main__":
    main()

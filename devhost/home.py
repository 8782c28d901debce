"""Where devhost lies, and its command line in an interpreter of its own."""

from collections.abc import Sequence
from pathlib import Path

HOME = Path(__file__).resolve().parents[1]
"""The folder that devhost is in: the repository."""
START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from devhost.__main__ import start; start()"
"""The plugins inherit no PYTHONPATH, which another way to say the folder would set."""


def devhost_command(python: str, arguments: Sequence[str], home: Path = HOME) -> list[str]:
    """-P, as in scripts/devhost: a file beside the user must not be imported in place of a module."""
    return [python, "-P", "-c", START, str(home), *arguments]

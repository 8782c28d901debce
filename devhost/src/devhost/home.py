"""How devhost starts itself, and the repository that it is developed in."""

from collections.abc import Sequence
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[3]
REPOSITORY = _ROOT if (_ROOT / "scripts" / "setup").is_file() and (_ROOT / "devhost" / "src").is_dir() else None
"""It has examples, and a script that makes the environment of flows; None for a devhost that was installed."""


def devhost_command(python: str, arguments: Sequence[str]) -> list[str]:
    """-P: a file in the current folder must not be imported in place of a module."""
    return [python, "-P", "-m", "devhost", *arguments]

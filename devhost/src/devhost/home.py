"""How devhost starts itself, and where its repository is."""

from collections.abc import Sequence
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[3]
REPOSITORY = _ROOT if (_ROOT / "scripts" / "setup").is_file() and (_ROOT / "devhost" / "src").is_dir() else None
"""The repository, with examples and a script that creates the environment for flows; None if devhost was installed."""


def devhost_command(python: str, arguments: Sequence[str]) -> list[str]:
    """Return the command that starts devhost. With `-P`, Python does not import modules from the current folder."""
    return [python, "-P", "-m", "devhost", *arguments]

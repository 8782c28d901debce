"""A plugin's own Python environment: where it is, and the commands that make it.

In: the plugin's directory. Out: the path of its Python or None; the commands as text.
"""

import tomllib
from pathlib import Path

from devhost.text.user_file import read_file

OF_REQUIREMENTS = "python -m venv .venv && .venv/bin/pip install -r requirements.txt"
OF_PROJECT = "uv sync"
OF_NOTHING = "python -m venv .venv && .venv/bin/pip install dify_plugin (it ships no list of what else it needs)"


def own_python(directory: Path) -> Path | None:
    python = directory / ".venv" / "bin" / "python"
    return python if python.is_file() else None


def how_to_install(directory: Path) -> str:
    """By what the plugin ships; as in Dify, pyproject.toml counts more than requirements.txt."""
    if _is_project(directory / "pyproject.toml"):
        return OF_PROJECT
    return OF_REQUIREMENTS if (directory / "requirements.txt").is_file() else OF_NOTHING


def _is_project(file: Path) -> bool:
    """Not a file that only holds settings of tools: `uv` refuses one without a project."""
    try:
        return "project" in tomllib.loads(read_file(file).decode())
    except FileNotFoundError:
        return False
    except (OSError, ValueError):  # uv will say what is wrong with it
        return True

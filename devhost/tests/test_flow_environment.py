"""`devhost flow` goes on in the environment of the workflow engine, which the first run makes."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SHELL = shutil.which("sh") or "/bin/sh"
GO_ON = """
import sys
from pathlib import Path
from devhost.errors import HostError
from devhost.flow.turn import go_on_in_flow_environment
try:
    go_on_in_flow_environment(["flow", "a b.yml"], Path(sys.argv[1]) if sys.argv[1] else None)
except HostError as error:
    sys.exit(f"Error: {error}")
"""
PYTHON = """#!/bin/sh
echo "$*"
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder in which the stand-in for scripts/setup makes a stand-in for the environment's Python."""
    python = tmp_path / ".venv-flow" / "bin" / "python"
    setup = tmp_path / "scripts" / "setup"
    setup.parent.mkdir()
    made = f"mkdir -p '{python.parent}' && printf '%s' '{PYTHON}' >'{python}' && chmod +x '{python}'"
    setup.write_text(f'#!{SHELL}\necho "made: $1"\n{made}\n', encoding="utf-8")
    setup.chmod(0o755)
    return tmp_path


def go_on(home: Path | str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", GO_ON, str(home)], check=False, capture_output=True, text=True)


def test_the_same_command_goes_on_in_the_environment_that_was_made(home: Path) -> None:
    went_on = go_on(home)

    assert went_on.stderr == "made: flow\n"
    assert went_on.stdout == "-P -m devhost flow a b.yml\n"


def test_a_devhost_that_was_installed_says_what_a_flow_needs() -> None:
    went_on = go_on("")

    assert went_on.returncode == 1
    assert "pip install 'dify-devhost[flow]'" in went_on.stderr

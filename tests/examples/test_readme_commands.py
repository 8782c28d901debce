"""The commands of the examples' READMEs, typed one after another on each database that the example takes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from order_desk.order_system_server import OrderSystemServer
from sqlalchemy import URL

from tests.support.documented_commands import Command, shown_commands

from .conftest import EXAMPLES

ROOT = EXAMPLES.parent
VARIABLES = {
    "answers": "ANSWERS_DATABASE_URL",
    "memo_to_task": "MEMOS_DATABASE_URL",
    "order_entry": "ORDER_ENTRY_DATABASE_URL",
}
NOT_RUN = ("order-system", "-m examples ")
"""What does not end, and `make examples` itself."""


def shown(example: str) -> list[Command]:
    page = (EXAMPLES / example / "README.md").read_text(encoding="utf-8")
    commands = [command for command in shown_commands(page) if command.words[0].startswith(".venv/bin/")]
    return [
        command
        for command in commands
        if "OPENAI" not in command.variables and not any(words in command.line for words in NOT_RUN)
    ]


@pytest.mark.e2e
@pytest.mark.parametrize("example", VARIABLES)
def test_every_command_of_the_readme_works(example: str, database_url: URL, tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI")}
    environment = {**kept, VARIABLES[example]: database_url.render_as_string(hide_password=False)}
    failed = []
    with OrderSystemServer() as order_system:
        for command in shown(example):
            program = ["-m", "devhost", *command.devhost] if command.devhost else [*command.words[1:]]
            if command.devhost and example == "order_entry":
                program += ["--credential", f"orders.order_system_url={order_system.url}"]
            done = subprocess.run(
                [sys.executable, *program], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
            )
            if done.returncode or "Traceback" in done.stderr or "has no turn" in done.stdout + done.stderr:
                failed.append((command.line, done.stdout[-2000:], done.stderr))
    assert failed == []
    assert len(shown(example)) > 3
    assert list(tmp_path.glob("*")) == (
        [Path(str(database_url.database))] if "sqlite" in database_url.drivername else []
    )

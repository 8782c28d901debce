"""The commands of the examples' READMEs, and all scenarios with their checks, on each database an example takes."""

import runpy
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from order_desk.order_system_server import OrderSystemServer
from sqlalchemy import URL

from devhost.cli.commands import main
from examples.runner.playing import played_rows
from examples.runner.scenarios import ROOT, example_names
from tests.support.documented_commands import Command, reader_in, shown_commands

from .postgres import Postgres

VARIABLES = {
    "answers": "ANSWERS_DATABASE_URL",
    "memo_to_task": "MEMOS_DATABASE_URL",
    "order_entry": "ORDER_ENTRY_DATABASE_URL",
}
NOT_RUN = ("order-system", "-m examples ", "devhost eval")
"""What does not end, `make examples` itself, and what tests/examples/test_helpdesk_evaluation.py runs."""


def shown(example: str) -> list[Command]:
    """The commands of the page, without those that need a key and those of a shell."""
    page = (ROOT / "examples" / example / "README.md").read_text(encoding="utf-8")
    commands = [command for command in shown_commands(page) if "OPENAI" not in command.variables]
    return [command for command in commands if not any(words in command.line for words in NOT_RUN)]


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[pytest.MonkeyPatch]:
    with reader_in(tmp_path / "repository", *(f"examples/{name}" for name in example_names())) as reader:
        yield reader


def typed(command: Command, reader: pytest.MonkeyPatch, *more: str) -> str:
    """What is wrong with how it ended; empty if nothing is."""
    program, *arguments = command.words
    output = StringIO()
    reader.setattr("sys.stdin", StringIO("".join(Path(file).read_text(encoding="utf-8") for file in command.read)))
    try:
        with redirect_stdout(output), redirect_stderr(output):
            if command.devhost:
                code = main([*command.devhost, *more])
            elif program == "cd":
                reader.chdir(arguments[0])
                code = 0
            elif arguments[0] == "-m" or program.endswith("alembic"):
                module, rest = (arguments[1], arguments[2:]) if arguments[0] == "-m" else ("alembic", arguments)
                reader.setattr("sys.argv", [module, *rest])
                reader.delitem(sys.modules, f"{module}.__main__", raising=False)  # which another test has imported
                runpy.run_module(module, run_name="__main__", alter_sys=True)
                code = 0
            else:
                return f"{command.line}: not a command that this test knows"
    except SystemExit as ended:
        code = 0 if not ended.code else 1
    said = output.getvalue()
    for file in command.written:
        Path(file).write_text(said, encoding="utf-8")
    return f"{command.line}\n{code}\n{said}" if code or "Traceback" in said or "has no turn" in said else ""


def all_wrong(example: str, reader: pytest.MonkeyPatch) -> list[str]:
    with OrderSystemServer() as order_system:
        address = ["--credential", f"orders.order_system_url={order_system.url}"] if example == "order_entry" else []
        return [wrong for each in shown(example) if (wrong := typed(each, reader, *address if each.devhost else []))]


def test_every_example_has_a_page_with_commands() -> None:
    assert all(len(shown(example)) > 1 for example in example_names())


@pytest.mark.e2e
@pytest.mark.parametrize("example", [name for name in example_names() if name not in VARIABLES])
def test_every_command_of_the_readme_works(example: str, reader: pytest.MonkeyPatch) -> None:
    assert all_wrong(example, reader) == []


@pytest.mark.e2e
@pytest.mark.parametrize("example", VARIABLES)
def test_every_command_of_the_readme_works_on_both_databases(
    example: str, database_url: URL, reader: pytest.MonkeyPatch
) -> None:
    reader.setenv(VARIABLES[example], database_url.render_as_string(hide_password=False))

    assert all_wrong(example, reader) == []


@pytest.mark.e2e
@pytest.mark.parametrize("example", VARIABLES)
def test_every_scenario_is_right_on_postgresql(example: str, postgres: Postgres) -> None:
    """`python -m examples`, which `make examples` runs too, plays them on SQLite."""
    rows = list(played_rows(example, postgres.new_database()))

    assert [(row.scenario, row.problems) for row in rows if row.problems] == []
    assert len(rows) == len({row.scenario for row in rows}) > 4

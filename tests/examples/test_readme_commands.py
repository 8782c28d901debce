"""Every code block of the examples' READMEs, and all scenarios with their checks, on each database an example takes."""

import runpy
import sys
import traceback
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
from tests.support.documented_commands import Command, commands_of, reader_in, shown_blocks, shown_outputs

from .postgres import Postgres

VARIABLES = {
    "answers": "ANSWERS_DATABASE_URL",
    "memo_to_task": "MEMOS_DATABASE_URL",
    "order_entry": "ORDER_ENTRY_DATABASE_URL",
}
NOT_RUN = ("order-system", "-m examples ", "devhost eval")
"""What does not end, `make examples` itself, and what tests/examples/test_helpdesk_evaluation.py runs."""


def page(example: str) -> str:
    return (ROOT / "examples" / example / "README.md").read_text(encoding="utf-8")


def blocks(example: str) -> list[tuple[str, str]]:
    return list(shown_blocks(page(example)))


def is_run(command: Command) -> bool:
    """Whether it needs no key, and is not of a shell alone."""
    return "OPENAI" not in command.variables and not any(words in command.line for words in NOT_RUN)


def shown(block: str) -> list[Command]:
    return list(filter(is_run, commands_of(block)))


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[pytest.MonkeyPatch]:
    with reader_in(tmp_path / "repository", *(f"examples/{name}" for name in example_names())) as reader:
        yield reader
    for file in (ROOT / "examples" / "helpdesk").glob("index.sqlite3*"):  # a command of the page keeps it there
        file.unlink()


def typed(command: Command, reader: pytest.MonkeyPatch, *more: str) -> tuple[str, str]:
    """What it said, and what is wrong with how it ended; the latter is empty if nothing is."""
    program, *arguments = command.words
    output = StringIO()
    errors = StringIO()
    reader.setattr("sys.stdin", StringIO("".join(Path(file).read_text(encoding="utf-8") for file in command.read)))
    try:
        with redirect_stdout(output), redirect_stderr(errors):
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
                return "", f"{command.line}: not a command that this test knows"
    except SystemExit as ended:
        code = 0 if not ended.code else 1
    for file in command.written:
        Path(file).write_text(output.getvalue(), encoding="utf-8")
    said = f"{output.getvalue()}{errors.getvalue()}"
    if code or "Traceback" in said or "has no turn" in said:
        return said, f"{command.line}\n{code}\n{said}"
    return said, ""


def executed(code: str) -> str:
    """What is wrong with Python that a reader types in; empty if nothing is."""
    output = StringIO()
    try:
        with redirect_stdout(output):
            exec(compile(code, "README.md", "exec"), {"__name__": "__console__"})  # noqa: S102 - our own page
    except Exception:  # noqa: BLE001 - shown by the test
        return f"{code}\n{traceback.format_exc()}"
    return ""


def not_said(block: str, said: str) -> Iterator[str]:
    """The lines of a shown output that no command before it printed; a terminal breaks lines elsewhere."""
    printed = "".join(said.split())
    for line in block.splitlines():
        if line.strip("… ") and "".join(line.split()) not in printed:
            yield f"no command printed: {line}"


def all_wrong(example: str, reader: pytest.MonkeyPatch) -> list[str]:
    wrong = list[str]()
    said = ""
    outputs = list(shown_outputs(page(example)))
    with OrderSystemServer() as order_system:
        address = ["--credential", f"orders.order_system_url={order_system.url}"] if example == "order_entry" else []
        for language, block in blocks(example):
            if language == "python":
                wrong.append(executed(block))
            elif language == "text" and block in outputs:
                wrong += not_said(block, said)
            for command in shown(block) if language == "sh" else ():
                printed, problem = typed(command, reader, *address if command.devhost else [])
                said += printed
                wrong.append(problem)
    return list(filter(None, wrong))


def test_every_example_has_a_page_with_commands_and_no_block_of_another_kind() -> None:
    for example in example_names():
        assert {language for language, _ in blocks(example)} <= {"sh", "python", "text"}, example
        assert sum(len(shown(block)) for language, block in blocks(example) if language == "sh") > 1, example


def test_python_and_output_that_do_not_hold_are_wrong() -> None:
    assert "NameError" in executed("print(model)")
    assert executed("print(1)") == ""
    assert list(shown_outputs("```text\npicture\n```\n\n```sh\na\nb\n```\n\n```text\nprinted\n```\n")) == ["printed\n"]
    assert list(not_said("Hit 1:\n…\nHit 2: b", "Hit\n1: a")) == ["no command printed: Hit 2: b"]


@pytest.mark.e2e
@pytest.mark.parametrize("example", [name for name in example_names() if name not in VARIABLES])
def test_every_block_of_the_readme_works(example: str, reader: pytest.MonkeyPatch) -> None:
    assert all_wrong(example, reader) == []


@pytest.mark.e2e
@pytest.mark.parametrize("example", VARIABLES)
def test_every_block_of_the_readme_works_on_both_databases(
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

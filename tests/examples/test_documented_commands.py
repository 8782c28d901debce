"""Commands of the pages, run one after another as a reader types them, in a copy of the repository."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from devhost.cli.commands import main
from tests.support.documented_commands import Command, reader_in, shown_commands, shown_files
from tests.support.pages import ROOT

PAGES = (
    *(
        "first-workflow",
        "devhost",
        "approval",
        "answer-schema",
        "policies",
        "node-values",
        "tools",
        "traces",
        "scripts",
    ),
    *("as-strict-as-dify", "check-and-pack", "record-and-fork", "evaluate", "write-a-strategy"),
)
COMMANDS = {"run", "tool", "init", "check", "list", "report", "replay", "record", "fork", "eval", "compare"}
NOT_RUN = ("--watch", "--otlp", "--package", "FILE", "$state", "tone=", "flow.jsonl", "cases.yaml", "eval merge")
"""In commands that do not end, need something outside, or run in a test of their own."""
CHARTS = "devhost/tests/fixtures/charts"
BREAKS_RULES = "--plugin devhost/tests/fixtures/bad_strategy"
"""The page says that its run exits with 1."""


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[None]:
    folders = ("examples", "tests/fixtures", CHARTS.partition("/charts")[0], "docs/images", "devhost/docs/images")
    with reader_in(tmp_path, "examples/helpdesk", "examples/injection", CHARTS, folders=folders) as reader:
        reader.setenv("CHARTS_API_KEY", "ck_1234567890")
        yield


def text(page: str) -> str:
    place = next(folder for folder in (ROOT / "docs", ROOT / "devhost" / "docs") if (folder / f"{page}.md").exists())
    return (place / f"{page}.md").read_text(encoding="utf-8")


def typed() -> list[Command]:
    """The commands that are cheap and safe, in the pages' order; of two alike the first."""
    commands = [command for page in PAGES for command in shown_commands(text(page)) if is_run(command)]
    return list({tuple(command.devhost or command.words): command for command in commands}.values())


def is_run(command: Command) -> bool:
    if command.words[0] == "cd":
        return True
    if not command.devhost or command.devhost[0] not in COMMANDS or "OPENAI" in command.variables:
        return False
    return not any(word in command.line for word in NOT_RUN)


@pytest.mark.usefixtures("reader")
def test_the_commands_of_the_pages_run() -> None:
    for name, written in (shown for page in PAGES for shown in shown_files(text(page)).items()):
        Path(name).write_text(written, encoding="utf-8")
    failed = []
    for command in typed():
        if command.words[0] == "cd":
            os.chdir(command.words[1])
        elif main(command.devhost) != int(BREAKS_RULES in command.line):
            failed.append(command.line)
    assert failed == []


def test_each_page_has_such_a_command() -> None:
    assert len(typed()) > 25

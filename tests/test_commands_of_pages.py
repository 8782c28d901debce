"""The commands of the pages: each target, option, example and file that they name exists."""

from pathlib import Path

import pytest

from tests.support.command_checks import check_page, packed_or_known
from tests.support.pages import PAGES, ROOT


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page_can_run(page: Path) -> None:
    assert check_page(page.read_text(encoding="utf-8")) == []


def test_what_the_pages_leave_in_the_root_is_ignored() -> None:
    """By git, and by the packager of the plugin. The reader of one page works in a folder of their own."""
    pages = [page for page in PAGES if page.name != "your-own-agent.md"]
    assert {left for page in pages for left in packed_or_known(page.read_text(encoding="utf-8"))} == set()


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("make tset", "make has no target tset"),
        ("devhost run --exmaple helpdesk", "No such option"),
        ("devhost run --example helpdsek", "there is no example helpdsek"),
        ("devhost report none.jsonl", "no earlier command writes none.jsonl, and the repository does not have it"),
        (".venv/bin/python -m exmaples", "there is no module exmaples"),
        ("scripts/none", "there is no scripts/none"),
    ],
)
def test_a_mistake_is_found(line: str, problem: str) -> None:
    (found,) = check_page(f"```sh\n{line}  # a comment\n```\n")
    assert problem in found


@pytest.mark.parametrize(
    "lines",
    [
        "devhost run --example helpdesk --trace run.jsonl\ndevhost report run.jsonl -o - | cat",
        "devhost run --example helpdesk --json >first.json\ndevhost run --script first.json",
        "devhost init tool one --folder ../two\ndevhost run --tools ../two --script ../two/scenarios/hello.yaml",
        "devhost run \\\n  --script FILE",
    ],
)
def test_a_file_that_an_earlier_command_writes_is_there(lines: str) -> None:
    assert check_page(f"```sh\n{lines}\n```\n") == []

"""The commands of the pages: each target, option, example and file that they name exists."""

from pathlib import Path

import pytest

from tests.support.command_checks import check_page
from tests.support.pages import PAGES, ROOT


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page_can_run(page: Path) -> None:
    assert check_page(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("make tset", "make has no target tset"),
        ("devhost run --exmaple helpdesk", "No such option"),
        ("devhost run --example helpdsek", "there is no example helpdsek"),
        ("devhost report tests/none.jsonl", "the repository has no tests/none.jsonl"),
        (".venv/bin/python -m exmaples", "there is no module exmaples"),
        ("scripts/none", "there is no scripts/none"),
    ],
)
def test_a_mistake_is_found(line: str, problem: str) -> None:
    (found,) = check_page(f"```sh\n{line}  # a comment\n```\n")
    assert problem in found

"""The console's pages of suites: evaluating with a changed instruction, and what became better."""

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
import yaml

from devhost.evaluation.results import INTERRUPTED, kept_beside
from support.console import ConsoleClient, words
from support.waiting import wait_for
from tests.devhost import ROOT

pytestmark = pytest.mark.processes

CHANGED = "Be brief. Answer in the language of the question."
SUITE = {
    "example": "helpdesk",
    "params": {"instruction": "Be brief."},
    "columns": [{"name": "standard", "strategy": "gpt5_function_calling"}],
    "cases": [
        {
            "name": "in Japanese [1]",
            "query": "Why?",
            "turns": [{"text": "はい", "when_system": "language of the question"}, {"text": "Yes"}],
            "expect": {"text": {"matches": "[\u3041-\u3093]"}},
        },
        {
            "name": "greeting",
            "query": "Hi",
            "turns": [{"text": "**<b>Hello</b>**"}],
            "expect": {"text": {"contains": "Hello"}},
        },
    ],
}


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleClient]:
    folder = tmp_path_factory.mktemp("suites")
    (folder / "cases.yaml").write_text(yaml.safe_dump(SUITE, allow_unicode=True))
    console = ConsoleClient(folder, ROOT)
    yield console
    console.close()


@pytest.fixture(scope="module")
def file(console: ConsoleClient) -> Path:
    return console.console.folder.path / "cases.yaml"


def address(file: Path) -> str:
    return f"/suite?{urlencode({'file': str(file)})}"


def evaluated(console: ConsoleClient, file: Path, do: str = "run", **values: str) -> str:
    """The page after an evaluation."""
    console.post("/suite", 303, file=str(file), do=do, **values)
    wait_for(lambda: "running" not in words(console.get(address(file))), "the end of the evaluation")
    return console.get(address(file))


@pytest.fixture(scope="module")
def pages(console: ConsoleClient, file: Path) -> tuple[str, str]:
    """Before and after a changed instruction."""
    return evaluated(console, file, instruction="Be brief."), evaluated(console, file, instruction=CHANGED)


def test_the_suites_of_the_examples_and_of_the_folder_are_listed(console: ConsoleClient, file: Path) -> None:
    page = console.get("/suites")

    assert "examples/helpdesk/evaluation.yaml</small>" in page
    assert f"{os.path.relpath(file)}</small>" in page


def test_a_path_that_leads_to_no_suite_is_a_page_that_says_so(console: ConsoleClient, tmp_path: Path) -> None:
    (tmp_path / "wrong.yaml").write_text("cases: [{name: <i>, expect: {txt: 1}}]")

    assert "no.yaml" in console.get(address(tmp_path / "no.yaml"), status=400)
    assert "case &#39;&lt;i&gt;&#39;, expect: unknown key &#39;txt" in console.get(
        address(tmp_path / "wrong.yaml"), 400
    )


def test_a_changed_instruction_makes_a_case_better(pages: tuple[str, str]) -> None:
    first, second = map(words, pages)

    assert "1 of 2 runs passed" in first
    assert "Compared with" not in first
    assert "2 of 2 runs passed" in second
    assert "standard: 1 of 2 cases got better, 0 got worse" in second
    assert "+ in Japanese [1] : failed → passed" in second
    assert "before: text matches: expected [\u3041-\u3093]; found Yes" in second
    assert "params.instruction:" in second


def test_an_interrupted_suite_can_begin_again(console: ConsoleClient, tmp_path: Path) -> None:
    file = tmp_path / "cases.yaml"
    file.write_text(yaml.safe_dump(SUITE, allow_unicode=True))
    evaluated(console, file)
    results = file.with_suffix(".results.jsonl")
    header, *ran = results.read_bytes().splitlines(keepends=True)
    interrupted = header + next(line for line in ran if b"Japanese" in line)  # which may have ended first or last
    results.write_bytes(interrupted)

    shown = words(console.get(address(file)))
    assert "interrupted 1 of 2 runs" in shown
    assert "Run the suite continues it Start over" in shown
    assert "1 of 2 runs passed" in words(evaluated(console, file, "fresh"))
    assert kept_beside(results, INTERRUPTED).read_bytes() == interrupted


def test_a_case_that_failed_is_open_and_leads_to_the_page_of_its_run(
    console: ConsoleClient, pages: tuple[str, str]
) -> None:
    (link,) = re.findall(r'<a href="(/runs/[^"]+)"><b>what this run did</b></a>', pages[0])

    assert len(re.findall(r'<details class="case" id="[^"]+" open>', pages[0])) == 1
    assert "Why?" in console.get(link)
    assert "what this run did" not in pages[1]


def test_each_case_has_its_answer_as_markdown_without_html_of_its_own(pages: tuple[str, str]) -> None:
    assert "<p><strong>&lt;b&gt;Hello&lt;/b&gt;</strong></p>" in pages[1]


def test_the_page_has_the_command_and_goes_on_from_the_last_instruction(pages: tuple[str, str]) -> None:
    shown = words(pages[1]).partition("The same in a terminal")[2].partition("--scripted")[0]

    assert shlex.split(shown)[:2] == ["devhost", "eval"]
    assert f"instruction={CHANGED}" in shlex.split(shown)
    assert f"{CHANGED}</textarea>" in pages[1]


def test_a_mistake_that_the_command_finds_is_shown(console: ConsoleClient, tmp_path: Path) -> None:
    file = tmp_path / "mistake.yaml"
    file.write_text(yaml.safe_dump({**SUITE, "example": "none"}))

    assert "there is no example" in words(evaluated(console, file))

"""A suite in a browser: from the first evaluation to "I changed the instruction, and this case got better"."""

import re
from pathlib import Path
from urllib.parse import urlencode

import pytest
import yaml
from playwright.sync_api import Page, expect

ANSWER = "Answer in the language of the question."
SUITE = {
    "description": "Asked in Japanese",
    "params": {"instruction": "Be brief."},
    "columns": [{"name": "standard", "strategy": "gpt5_function_calling"}],
    "cases": [
        {
            "name": "in Japanese",
            "query": "Why?",
            "turns": [{"text": "はい", "when_system": "language of the question"}, {"text": "Yes"}],
            "expect": {"text": {"matches": "[\u3041-\u3093]"}},
        },
        {"name": "greeting", "query": "Hi", "turns": [{"text": "Hello"}], "expect": {"text": {"contains": "Hello"}}},
    ],
}


@pytest.fixture
def suite(runs_folder: Path) -> Path:
    file = runs_folder / "mine.yaml"
    file.write_text(yaml.safe_dump(SUITE, allow_unicode=True))
    return file


def test_a_changed_instruction_makes_a_case_better(page: Page, suite: Path) -> None:
    page.get_by_role("link", name="Suites").click()
    page.get_by_role("link", name=suite.name).click()
    page.get_by_role("button", name="Run the suite").click()
    expect(page.get_by_role("status")).to_contain_text("The last evaluation: 1 of 2 runs passed")

    page.get_by_label("Instruction").fill(f"Be brief. {ANSWER}")
    page.get_by_role("button", name="Run the suite").click()

    expect(page.get_by_role("status")).to_contain_text("The last evaluation: 2 of 2 runs passed")
    expect(page.get_by_text("1 of 2 cases got better, 0 got worse")).to_be_visible()
    page.locator("summary").filter(has_text=re.compile("in Japanese")).click()
    expect(page.locator("pre").filter(has_text="はい")).to_be_visible()


def test_results_come_in_and_the_evaluation_can_be_stopped(page: Page, suite: Path) -> None:
    page.goto(f"{page.url}suite?{urlencode({'file': str(suite)})}")
    page.get_by_label("Repeats of each case").fill("1000")
    page.get_by_role("button", name="Run the suite").click()
    expect(page.get_by_role("status")).to_contain_text(re.compile(r"running [1-9][\d,]* of 2,000 runs"))
    page.get_by_role("button", name="Stop").click()

    expect(page.get_by_role("status")).to_contain_text(re.compile(r"interrupted [\d,]+ of 2,000 runs"))

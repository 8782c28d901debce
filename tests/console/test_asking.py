"""A person chooses what runs, edits it, asks, approves or rejects a call that waits, and stops; in a real browser."""

import re
from pathlib import Path
from urllib.parse import urlencode

import pytest
import yaml
from playwright.sync_api import Page, expect

from support.waiting import PATIENCE
from tests.console.accessibility import looks_well
from tests.console.browsing import OpenPage
from tests.console.serving import Served


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """An answer that takes longer than any test."""
    file = tmp_path / "slow.yaml"
    turns = [{"text": ["first words ", *["tick "] * 100 * PATIENCE], "delay": 0.1}]
    file.write_text(yaml.safe_dump({"query": "Take your time.", "turns": turns, "otherwise": turns}))
    return file


def status(page: Page, words: str) -> None:
    expect(page.locator("#waiting .status")).to_have_text(words)


def test_a_scenario_is_chosen_edited_asked_rejected_and_approved(open_page: OpenPage, console: Served) -> None:
    page = open_page(console, "/new")
    page.get_by_label("Scenario", exact=True).select_option("example:injection/mail")
    expect(page.get_by_label(re.compile("^Question"))).to_have_value("Confirm the choir's booking.")
    page.locator("#settings > summary").click()
    page.get_by_label(re.compile("^Instruction")).fill("Work in the office.\nBe brief.")
    page.get_by_label(re.compile("^Max iterations")).fill("7")
    page.get_by_label("Strategy", exact=True).select_option("gpt5_react")
    expect(page.get_by_label("Strategy", exact=True)).to_have_value("gpt5_react")
    expect(page.locator(".field.changed")).to_have_count(2)
    page.get_by_role("button", name="Reset maximum_iterations").click()
    expect(page.locator(".field.changed")).to_have_count(1)
    expect(page.get_by_label(re.compile("^Instruction"))).to_have_value("Work in the office.\nBe brief.")

    page.get_by_role("button", name="Start", exact=True).click()

    page.wait_for_url("**/runs/*")
    status(page, "Waits for your approval.")
    expect(page.locator(".call h3")).to_have_text("send_mail")
    page.get_by_label(re.compile("^Your own answer")).fill("mention the piano")
    page.get_by_role("button", name="Reject").click()
    expect(page.locator(".call pre")).to_contain_text("about the piano")
    page.get_by_role("button", name="Approve").click()
    status(page, "Waits for a question.")
    expect(page.get_by_text("The mail to choir@st-anne.example is sent.").first).to_be_visible()
    page.get_by_text("The same in a terminal").click()
    expect(page.get_by_label("Command")).to_contain_text("--strategy gpt5_react")
    looks_well(page)

    page.get_by_role("button", name="End the conversation").click()
    status(page, "The conversation has ended.")
    page.get_by_role("link", name="Start the same again").click()
    expect(page.get_by_label(re.compile("^Instruction"))).to_have_value("Work in the office.\nBe brief.")


def test_an_answer_that_streams_is_stopped_and_the_conversation_goes_on(
    open_page: OpenPage, console: Served, slow: Path
) -> None:
    page = open_page(console, f"/new?{urlencode({'source': f'script:{slow}'})}")
    expect(page.get_by_label(re.compile("^Question"))).to_have_value("Take your time.")
    page.get_by_label(re.compile("^Question")).press("Enter")

    expect(page.get_by_text("first words tick").first).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    status(page, "Waits for a question.")
    page.set_viewport_size({"width": 1280, "height": 720})
    page.get_by_label("Next question").press_sequentially("And now")
    page.get_by_label("Next question").press("Shift+Enter")
    page.get_by_label("Next question").press_sequentially("in two lines?")
    page.evaluate("scrollTo(0, 0)")
    page.get_by_label("Next question").press("Enter")
    status(page, "The agent works.")
    expect(page.locator(".awaited")).to_have_text(re.compile(r"^scripted-gpt-5 \d+ s$"))
    expect(page.get_by_role("heading", name="And now in two lines?")).to_be_in_viewport()
    page.get_by_role("button", name="Kill").click()
    status(page, "The conversation is over: its process was killed.")

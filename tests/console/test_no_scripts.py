"""A browser that runs no scripts: forms, links and reloading do all that a person came for."""

import re
import time
from pathlib import Path

from playwright.sync_api import Page, expect

from support.waiting import PATIENCE
from tests.console.browsing import OpenPage
from tests.console.serving import Served


def reload_until(page: Page, words: str) -> None:
    end = time.monotonic() + PATIENCE
    while not page.get_by_text(words).count():
        assert time.monotonic() < end, page.locator("main").inner_text()
        time.sleep(0.2)
        page.reload()


def test_from_a_question_to_a_suite_without_scripts(open_page: OpenPage, console: Served, runs_folder: Path) -> None:
    page = open_page(console, "/new", java_script_enabled=False)
    page.get_by_label("Scenario", exact=True).select_option("example:injection/mail")
    page.get_by_role("button", name="Show this scenario").click()
    expect(page.get_by_label(re.compile("^Question"))).to_have_value("Confirm the choir's booking.")
    page.get_by_role("button", name="Start", exact=True).last.click()
    reload_until(page, "Waits for your approval.")
    page.get_by_role("button", name="Approve").click()
    reload_until(page, "Waits for a question.")
    expect(page.get_by_text("The mail to choir@st-anne.example is sent.").first).to_be_visible()
    page.get_by_label("Next question").fill("Is it really sent?")
    page.get_by_role("button", name="Ask").click()
    reload_until(page, "Waits for a question.")
    expect(page.get_by_role("heading", name="Is it really sent?")).to_be_visible()
    page.get_by_role("button", name="End the conversation").click()
    reload_until(page, "The conversation has ended.")

    page.get_by_role("link", name="Runs").click()
    page.get_by_role("searchbox").fill("authenticator")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("tr[data-row]")).to_have_count(1)
    page.get_by_role("link", name="Runs").click()
    expect(page.locator("tr[data-row]")).to_have_count(3)
    for place in range(2):
        page.get_by_role("checkbox", name="Choose").nth(place).check()
    page.get_by_role("button", name="Compare two").click()
    expect(page.get_by_role("heading", name="Numbers")).to_be_visible()

    page.goto(console.url("/runs/helpdesk"))
    page.get_by_role("link", name="Keep as a case").click()
    page.get_by_label("Name").fill("two topics")
    page.get_by_role("button", name="Keep").click()
    page.get_by_role("link", name="Open its suite").click()
    page.get_by_role("button", name="Run the suite").click()
    reload_until(page, "The last evaluation: 1 of 1 run passed")
    page.locator("details.case > summary").click()
    expect(page.locator("details.case pre").first).to_be_visible()
    assert (runs_folder / "cases.results.jsonl").is_file()

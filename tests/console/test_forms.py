"""The forms of a run in a browser: the way from a mistake to its field, and Back to what was typed."""

import re

from playwright.sync_api import Page, expect

from tests.console.browsing import OpenPage
from tests.console.serving import Served

QUESTION = re.compile("^Question")
INSTRUCTION = re.compile("^Instruction")


def test_the_focus_goes_to_the_mistakes_and_from_there_to_the_field(open_page: OpenPage, console: Served) -> None:
    page = open_page(console, "/new")
    page.locator("#settings > summary").click()
    rounds = page.get_by_label(re.compile("^Max iterations"))
    rounds.fill("0")
    page.locator("form#new").evaluate("form => form.noValidate = true")

    page.get_by_role("button", name="Start", exact=True).last.click()

    expect(page.locator("#mistakes")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(rounds).to_be_focused()
    expect(page.get_by_text("Max iterations maximum_iterations").last).to_be_in_viewport()


def began(page: Page) -> None:
    page.get_by_role("button", name="Start", exact=True).last.click()
    page.wait_for_url("**/runs/*")
    expect(page.locator("#waiting")).to_be_visible()


def test_back_from_the_run_leads_to_what_was_typed(open_page: OpenPage, console: Served) -> None:
    page = open_page(console, "/new")
    page.get_by_label("Scenario", exact=True).select_option("example:injection/mail")
    expect(page.get_by_label(QUESTION)).to_have_value("Confirm the choir's booking.")
    page.get_by_label(QUESTION).fill("")
    page.locator("#settings > summary").click()
    page.get_by_label(INSTRUCTION).fill("Be brief.\nVery.")
    page.get_by_role("button", name="Start", exact=True).last.click()
    expect(page.locator("#mistakes")).to_be_focused()
    page.get_by_label(QUESTION).fill("Confirm it,\nplease & soon.")
    began(page)

    page.go_back()

    expect(page.get_by_label(QUESTION)).to_have_value("Confirm it,\nplease & soon.")
    expect(page.get_by_label(INSTRUCTION)).to_have_value("Be brief.\nVery.")
    expect(page.get_by_label("Scenario", exact=True)).to_have_value("example:injection/mail")
    page.reload()
    expect(page.get_by_label(INSTRUCTION)).to_have_value("Be brief.\nVery.")
    page.get_by_role("link", name="New run").click()
    expect(page.get_by_label("Scenario", exact=True)).to_have_value("example:answers")
    expect(page.get_by_label(INSTRUCTION)).not_to_have_value("Be brief.\nVery.")

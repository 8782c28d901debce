"""The forms of a run in a browser: the way from a mistake to its field, a check, and Back to what was typed."""

import re

from playwright.sync_api import Page, expect

from tests.console.browsing import OpenPage
from tests.console.serving import Served

QUESTION = re.compile("^Question")
INSTRUCTION = re.compile("^Instruction")


def test_the_focus_goes_to_the_mistakes_and_from_there_to_the_field(open_page: OpenPage, console: Served) -> None:
    page = open_page(console, "/new")
    schema = page.get_by_label(re.compile("^Answer schema"))
    schema.fill("{")

    for button in ("Start", "Check without starting"):
        page.get_by_role("button", name=button, exact=True).last.click()
        expect(page.locator("#mistakes")).to_be_focused()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(schema).to_be_focused()
        expect(page.get_by_text("Answer schema answer_schema").last).to_be_in_viewport()


def test_a_check_keeps_the_focus_and_its_word_goes_with_the_next_change(open_page: OpenPage, console: Served) -> None:
    for path, words in (("/new", "Start begins"), ("/runs/helpdesk/again", "Run again starts")):
        page = open_page(console, path)
        check = page.get_by_role("button", name="Check without starting")
        check.click()
        expect(page.locator("#fits")).to_have_text(f"Everything fits: {words} this run.")
        expect(check).to_be_focused()
        page.get_by_label(INSTRUCTION).fill("Be brief.")
        expect(page.locator("#fits")).to_have_count(0)


def began(page: Page) -> None:
    page.get_by_role("button", name="Start", exact=True).last.click()
    page.wait_for_url("**/runs/*")
    expect(page.locator("#waiting")).to_be_visible()


def test_back_from_the_run_leads_to_what_was_typed(open_page: OpenPage, console: Served) -> None:
    page = open_page(console, "/new")
    page.get_by_label("Scenario", exact=True).select_option("example:injection/mail")
    expect(page.get_by_label(QUESTION)).to_have_value("Confirm the choir's booking.")
    page.get_by_label(QUESTION).fill("")
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

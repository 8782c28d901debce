"""A run is started, and a tool is called, with the keyboard alone; a search field leaves what has its words."""

import re

from playwright.sync_api import expect

from tests.console.accessibility import looks_well, open_all
from tests.console.browsing import OpenPage
from tests.console.serving import Served

TOOL = "/tool?tools=examples/helpdesk&name=helpdesk/search_manual"


def test_a_new_run_has_its_question_in_focus_and_enter_starts_it(open_page: OpenPage, console: Served) -> None:
    page = open_page(console, "/new")
    question = page.get_by_label("Question", exact=True)
    expect(question).to_be_focused()

    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("Two")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("lines")
    expect(question).to_have_value("Two\nlines")
    page.keyboard.press("Enter")

    page.wait_for_url("**/runs/*")
    expect(page.get_by_role("heading", level=1)).to_have_text("Two lines")


def test_a_scenario_is_found_by_its_words(open_page: OpenPage, console: Served) -> None:
    page = open_page(console, "/new")
    field = page.get_by_role("searchbox", name="Find a scenario")
    options = page.locator("#source option")
    all_of_them = options.count()

    field.fill("injection mail")
    expect(options.filter(has_text="injection / mail")).to_have_count(1)
    assert options.count() <= 2, "what is found, and what is chosen"
    field.fill("")
    expect(options).to_have_count(all_of_them)
    field.fill("injection mail")
    field.press("Enter")

    expect(page.get_by_label("Question", exact=True)).to_have_value("Confirm the choir's booking.")
    expect(page.get_by_label("Question", exact=True)).to_be_focused()


def test_a_tool_is_found_and_called(open_page: OpenPage, console: Served) -> None:
    page = open_page(console, "/tools")
    page.get_by_role("searchbox", name="Find a tool").fill("passages manual")
    expect(page.locator("[data-entry]:visible")).to_have_count(1)
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", level=1)).to_contain_text("search_manual")
    expect(page.locator("[id='p.terms']")).to_be_focused()
    page.keyboard.type("login")
    page.keyboard.press("Enter")

    expect(page.get_by_role("status").filter(has_text=re.compile("finished after"))).to_be_visible()
    expect(page.locator("#messages")).to_contain_text("login")
    open_all(page)
    looks_well(page)


def test_a_call_that_is_refused_leads_to_its_field(open_page: OpenPage, console: Served) -> None:
    page = open_page(console, TOOL)
    page.locator("[id='p.terms']").fill("")  # another test may have called it
    page.get_by_role("button", name="Call the tool").click()

    expect(page.get_by_role("alert")).to_be_focused()
    expect(page.get_by_role("alert")).to_contain_text("needs terms")
    looks_well(page)

"""What the tests of this folder rest on: pages open, axe finds violations, and a script's error fails a test."""

import re

from playwright.sync_api import Browser, Page, expect

from tests.console.accessibility import axe, overflow
from tests.console.browsing import OpenPage, Pages
from tests.console.serving import Served


def test_a_page_opens_and_its_address_holds_no_token(page: Page) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text("Runs")
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", page.url)


def test_axe_names_what_violates_its_rules(page: Page) -> None:
    page.evaluate("document.querySelector('main').innerHTML = '<input><p style=\"color: #ccc\">pale</p>'")

    violations = axe(page)

    assert {line.split(":")[0] for line in violations} == {"label", "color-contrast"}


def test_a_page_that_is_too_wide_is_found(open_page: OpenPage, console: Served) -> None:
    page = open_page(console, viewport={"width": 360, "height": 700})
    page.evaluate("document.querySelector('main').innerHTML = '<p style=\"width: 400px\">wide</p>'")

    assert overflow(page) > 0


def test_what_a_page_refuses_and_what_fails_in_a_script_is_noted(browser: Browser, console: Served) -> None:
    pages = Pages(browser)
    page = pages.open(console)

    page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.ran=1'}))"
    )
    with page.expect_event("pageerror"):
        page.evaluate("void setTimeout(() => { throw new Error('a mistake') })")
    pages.close()

    assert len(pages.problems) == 2
    assert "Content Security Policy" in pages.problems[0]
    assert "a mistake" in pages.problems[1]

"""What all pages have in common: the way to the content, the keys, and that a person can turn the keys off."""

import re

from playwright.sync_api import Page, expect


def test_the_first_tab_stop_skips_the_navigation(page: Page) -> None:
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to the content")

    page.keyboard.press("Enter")

    expect(page.locator("main")).to_be_focused()


def test_the_navigation_marks_where_the_page_is(page: Page) -> None:
    expect(page.get_by_role("navigation", name="Console").locator("[aria-current=page]")).to_have_text("Runs")


def test_letters_are_shortcuts_until_they_are_turned_off(page: Page) -> None:
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    expect(keys).to_be_visible()

    keys.get_by_label("Single letters are shortcuts").uncheck()
    keys.get_by_role("button", name="Close").click()
    page.reload()
    expect(page.get_by_role("button", name="Keys")).to_be_visible()
    page.keyboard.press("?")
    expect(keys).to_be_hidden()

    page.get_by_role("button", name="Keys").click()
    keys.get_by_label("Single letters are shortcuts").check()
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    expect(page).to_have_url(re.compile("/new$"))

"""What all pages have in common: that nothing from a run is taken for HTML, and what finds mistakes here."""

import json
import re
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.console.accessibility import axe, overflow
from tests.console.browsing import OpenPage, Pages
from tests.console.conftest import OpenConsole
from tests.console.serving import Served


def test_a_page_says_where_it_is_and_its_first_tab_stop_skips_the_navigation(page: Page) -> None:
    expect(page.get_by_role("navigation", name="Console").locator("[aria-current=page]")).to_have_text("Runs")
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", page.url), "it holds no token"
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to the content")

    page.keyboard.press("Enter")

    expect(page.locator("main")).to_be_focused()


HOSTILE = (
    "<script>window.ran = 1</script><style>body { display: none }</style>"
    '<img src=x onerror="window.ran = 1"><a href="javascript:window.ran = 1">authenticator</a>'
)
LONG = "a" * 1_000_000


def test_a_hostile_tool_result_is_text(
    open_console: OpenConsole, open_page: OpenPage, recorded: Path, tmp_path: Path
) -> None:
    runs = tmp_path / "hostile"
    runs.mkdir()
    text = (recorded / "helpdesk.jsonl").read_text(encoding="utf-8")
    hostile = text.replace("recovery codes", json.dumps(LONG)[1:-1]).replace("authenticator", json.dumps(HOSTILE)[1:-1])
    assert hostile.count(LONG) > 1
    (runs / "hostile.jsonl").write_text(hostile, encoding="utf-8")
    page = open_page(open_console(runs), viewport={"width": 360, "height": 800})
    expect(page.get_by_role("link", name="<script>window.ran = 1</script>")).to_be_visible()
    check_harmless(page)

    page.goto(page.url + "runs/hostile")
    page.locator("summary", has_text="CALL search_manual").first.click()

    expect(page.get_by_text("<style>body { display: none }</style>").first).to_be_visible()
    check_harmless(page)


def check_harmless(page: Page) -> None:
    assert page.evaluate("window.ran") is None
    assert page.locator("main script, main style, main img[onerror], main a[href^='javascript:']").count() == 0
    assert overflow(page) == 0


def test_what_is_wrong_with_a_page_is_found(browser: Browser, console: Served) -> None:
    pages = Pages(browser)
    page = pages.open(console, viewport={"width": 360, "height": 700})

    page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.ran=1'}))"
    )
    with page.expect_event("pageerror"):
        page.evaluate("void setTimeout(() => { throw new Error('a mistake') })")
    wrong = '<input><p style="color: #ccc">pale</p><hr style="width: 400px">'
    page.evaluate("html => { document.querySelector('main').innerHTML = html; }", wrong)
    violations = {line.split(":")[0] for line in axe(page)}
    wide = overflow(page)
    pages.close()

    assert violations >= {"label", "color-contrast"}
    assert wide > 0
    assert len(pages.problems) == 2
    assert "Content Security Policy" in pages.problems[0]
    assert "a mistake" in pages.problems[1]

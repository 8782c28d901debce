"""A double click does once what one click does, and a half-written question outlives what happens elsewhere."""

import re

from playwright.sync_api import Page, Request, expect

from tests.console.browsing import OpenPage
from tests.console.serving import Served


def begin_mail(page: Page) -> None:
    page.get_by_label("Scenario", exact=True).select_option("example:injection/mail")
    expect(page.get_by_label(re.compile("^Question"))).to_have_value("Confirm the choir's booking.")


def sent_by(page: Page, path: str) -> list[Request]:
    requests: list[Request] = []
    page.on(
        "request", lambda each: requests.append(each) if each.method == "POST" and each.url.endswith(path) else None
    )
    return requests


def status(page: Page, words: str) -> None:
    expect(page.locator("#waiting .status")).to_have_text(words)


def test_a_double_click_starts_approves_and_asks_once(open_page: OpenPage, console: Served) -> None:
    page = open_page(console, "/new")
    begin_mail(page)
    started = sent_by(page, "/new")
    page.get_by_role("button", name="Start", exact=True).dblclick()
    page.wait_for_url("**/runs/*")
    status(page, "Waits for your approval.")
    assert len(started) == 1
    assert len(list(console.runs.glob("*.setup.json"))) == 1

    told = sent_by(page, "/steer")
    page.get_by_role("button", name="Approve").dblclick(delay=120)
    status(page, "Waits for a question.")
    expect(page.get_by_text("The mail to choir@st-anne.example is sent.").first).to_be_visible()
    assert [request.post_data and "do=approve" in request.post_data for request in told] == [True]

    page.get_by_label("Next question").fill("Once more.")
    page.get_by_role("button", name="Ask").dblclick(delay=120)
    expect(page.get_by_role("heading", name="Once more.")).to_have_count(1)
    assert len(told) == 2


def test_a_half_written_question_stays_when_another_page_asks_first(open_page: OpenPage, console: Served) -> None:
    page = open_page(console, "/new")
    begin_mail(page)
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_url("**/runs/*")
    status(page, "Waits for your approval.")
    other = open_page(console, page.url.removeprefix(console.url("/").rstrip("/")))
    page.get_by_label(re.compile("^Your own answer")).fill("only if")
    page.get_by_role("button", name="Reject").focus()

    other.get_by_label(re.compile("^Your own answer")).fill("mention the piano")
    other.get_by_role("button", name="Reject").click()

    expect(page.locator(".call pre")).to_contain_text("about the piano")
    expect(page.get_by_label(re.compile("^Your own answer"))).to_have_value("only if")
    assert page.evaluate("document.querySelector('#waiting').contains(document.activeElement)")


def test_two_people_start_runs_at_once_and_each_sees_their_own(open_page: OpenPage, console: Served) -> None:
    pages = [open_page(console, "/new") for _ in range(2)]
    for number, page in enumerate(pages):
        begin_mail(page)
        page.get_by_label(re.compile("^Question")).fill(f"Question {number}.")
    for page in pages:
        page.get_by_role("button", name="Start", exact=True).click(no_wait_after=True)
    for number, page in enumerate(pages):
        page.wait_for_url("**/runs/*")
        expect(page.locator(".asked-words")).to_have_text([f"Question {number}."])
        expect(page.locator(".span.model > summary").first).to_be_visible()
    assert pages[0].url != pages[1].url

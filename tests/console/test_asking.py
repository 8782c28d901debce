"""A person asks, approves or rejects a call that waits, stops, runs again with a change, and keeps a case."""

import re
from pathlib import Path
from urllib.parse import urlencode

import pytest
import yaml
from playwright.sync_api import Page, Request, expect

from support.flow_documents import START, answer, chatflow, node
from support.waiting import PATIENCE
from tests.console.accessibility import looks_well, open_all
from tests.console.browsing import OpenPage
from tests.console.serving import ROOT, Served

INSTRUCTION = re.compile("^Instruction")
SIZES = ((360, 740), (768, 900), (1280, 720), (1920, 1080))


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """An answer that takes longer than any test."""
    file = tmp_path / "slow.yaml"
    turns = [{"text": ["first words ", *["tick "] * 100 * PATIENCE], "delay": 0.1}]
    file.write_text(yaml.safe_dump({"query": "Take your time.", "turns": turns, "otherwise": turns}))
    return file


def status(page: Page, words: str) -> None:
    expect(page.locator("#waiting .status")).to_have_text(words)


def begin_mail(page: Page) -> None:
    page.get_by_label("Scenario", exact=True).select_option("example:injection/mail")
    expect(page.get_by_label("Question", exact=True)).to_have_value("Confirm the choir's booking.")


def test_a_scenario_is_chosen_edited_asked_rejected_and_approved(open_page: OpenPage, console: Served) -> None:
    page = open_page(console, "/new")
    begin_mail(page)
    page.locator("#settings > summary").click()
    page.get_by_label("Strategy", exact=True).select_option("gpt5_react")
    expect(page.locator("#settings > summary")).to_contain_text("gpt5_react")
    page.locator("#settings > summary").click()
    page.get_by_label(INSTRUCTION).fill("Work in the office.\nBe brief.")

    page.get_by_role("button", name="Start", exact=True).click()

    page.wait_for_url("**/runs/*")
    status(page, "Waits for your approval.")
    expect(page.locator(".call h3")).to_have_text("send_mail")
    looks_well(page)
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        page.get_by_role("button", name="Approve").scroll_into_view_if_needed()
        expect(page.get_by_role("button", name="Approve")).to_be_in_viewport()
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
    expect(page.get_by_label(INSTRUCTION)).to_have_value("Work in the office.\nBe brief.")


@pytest.mark.skipif(not (ROOT / ".venv-flow").exists(), reason="flows run in .venv-flow: scripts/setup flow makes it")
def test_a_form_keeps_what_is_typed_until_it_is_answered(open_page: OpenPage, console: Served, tmp_path: Path) -> None:
    reason: dict[str, object] = {"type": "paragraph", "output_variable_name": "reason"}
    when = {"type": "select", "output_variable_name": "when", "option_source": {"value": ["now", "later"]}}
    actions = [{"id": "ok", "title": "Send", "button_style": "primary"}]
    form = node("human-input", "form", form_content="## Send it?", inputs=[reason, when], user_actions=actions)
    nodes = [START, form, answer("{{#form.when#}}: {{#form.reason#}}")]
    chatflow(tmp_path, nodes, [("start", "form"), ("form", "answer", "ok")])
    (tmp_path / "script.yaml").write_text("flow: flow.yml\nquery: The mail\n")
    page = open_page(console, f"/new?{urlencode({'source': f'flow:{tmp_path}/script.yaml'})}")
    page.get_by_role("button", name="Start", exact=True).click()
    status(page, "Waits for an answer.")

    page.get_by_label("reason").fill("It is right.\nSo I say.")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_label("when")).to_have_accessible_description("choose one of: now, later")
    looks_well(page)
    page.get_by_label("when").select_option("later")
    version = str(page.locator("#look").get_attribute("hx-get"))
    (printed,) = console.runs.glob("*-script-*.output.txt")
    printed.write_text("a plugin prints\n")  # the page has another version
    expect(page.locator("#look")).not_to_have_attribute("hx-get", version)
    page.get_by_role("button", name="Send").click()

    status(page, "Waits for a question.")
    expect(page.locator(".answer")).to_have_text(re.compile(r"later: It is right\.\s+So I say\."))


def test_an_answer_that_streams_is_stopped_and_the_conversation_goes_on(
    open_page: OpenPage, console: Served, slow: Path
) -> None:
    page = open_page(console, f"/new?{urlencode({'source': f'script:{slow}'})}")
    page.get_by_label("Question", exact=True).press("Enter")

    expect(page.get_by_text("first words tick").first).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    status(page, "Waits for a question.")
    field = page.get_by_label("Next question")
    field.press_sequentially("And now")
    field.press("Shift+Enter")
    field.press_sequentially("in two lines?")
    page.evaluate("scrollTo(0, 0)")
    field.press("Enter")
    status(page, "The agent works.")
    expect(page.locator(".awaited")).to_have_text(re.compile(r"^scripted-gpt-5 \d+ s$"))
    expect(page.get_by_role("heading", name="And now in two lines?")).to_be_in_viewport()
    page.get_by_role("button", name="End the conversation").click()
    status(page, "The conversation has ended.")


def test_a_double_click_starts_approves_and_asks_once(open_page: OpenPage, console: Served) -> None:
    page = open_page(console, "/new")
    begin_mail(page)
    sent = list[Request]()
    page.on("request", lambda each: sent.append(each) if each.method == "POST" else None)
    page.get_by_role("button", name="Start", exact=True).dblclick()
    page.wait_for_url("**/runs/*")
    status(page, "Waits for your approval.")
    assert (len(sent), len(list(console.runs.glob("*.setup.json")))) == (1, 1)

    page.get_by_role("button", name="Approve").dblclick(delay=120)
    status(page, "Waits for a question.")
    page.get_by_label("Next question").fill("Once more.")
    page.get_by_role("button", name="Ask").dblclick(delay=120)
    expect(page.get_by_role("heading", name="Once more.")).to_have_count(1)
    status(page, "Waits for a question.")
    expect(page.locator(".turn-said")).to_have_count(3)


def test_a_mistake_leads_to_its_field_and_back_leads_to_what_was_typed(open_page: OpenPage, console: Served) -> None:
    page = open_page(console, "/new?source=example:injection/mail")
    page.locator("#settings > summary").click()
    page.get_by_label("Files that go with the question, a path a line").fill("/nowhere.png")
    page.get_by_label(INSTRUCTION).fill("Be brief.\nVery.")
    page.get_by_role("button", name="Start", exact=True).click()

    expect(page.locator("#mistakes")).to_be_focused()
    open_all(page)
    looks_well(page)
    page.get_by_role("link", name="Files", exact=True).click()
    files = page.get_by_label("Files that go with the question, a path a line")
    expect(files).to_be_in_viewport()
    expect(files).to_have_value("/nowhere.png")
    expect(page.get_by_label(INSTRUCTION)).to_have_value("Be brief.\nVery.")


def test_a_changed_instruction_leads_to_another_run_and_both_side_by_side(page: Page) -> None:
    page.goto(f"{page.url}runs/helpdesk")
    page.get_by_role("link", name="Run again with a change").click()
    page.get_by_label("after round 1, which calls").check()
    page.get_by_label(INSTRUCTION).first.fill("Answer in one sentence.")
    page.get_by_role("button", name="Run again").click()

    expect(page).to_have_url(re.compile(r"/runs/[^/]+-again-[0-9a-f]+$"))
    status(page, "The run has ended.")
    page.get_by_role("link", name="Compare with the run before").click()
    expect(page.locator("ins, .came").filter(has_text="Answer in one sentence.").first).to_be_visible()
    expect(page.get_by_role("heading", name="Question and inputs")).to_be_visible()


def test_a_run_is_kept_as_a_case_and_its_suite_is_played(page: Page, console: Served) -> None:
    page.goto(console.url("/runs/helpdesk/keep"))
    page.get_by_label("Name").fill("two-topics")
    page.get_by_role("button", name="Keep").click()
    page.get_by_role("button", name="Run the suite").click()

    expect(page.get_by_text("The last evaluation: 1 of 1 run passed")).to_be_visible()
    page.locator("details.case > summary").click()
    expect(page.locator("details.case pre").first).to_be_visible()

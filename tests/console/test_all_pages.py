"""What holds on every page: nothing from a run is taken for HTML, and a run that begins or is killed is seen."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.console.accessibility import overflow
from tests.console.browsing import OpenPage
from tests.console.conftest import OpenConsole
from tests.console.serving import ROOT, Served

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


def test_two_pages_at_once_see_a_run_begin_and_be_killed(
    open_page: OpenPage, console: Served, runs_folder: Path
) -> None:
    pages = [open_page(console), open_page(console, "/?search=chat")]
    command = [sys.executable, "-m", "devhost", "chat", "--example", "helpdesk", "--scripted"]
    process = subprocess.Popen(
        [*command, "--trace", str(runs_folder / "chat.jsonl")],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    badges = [
        page.locator("tr[data-row]", has=page.locator("a[href='/runs/chat']")).locator(".badge") for page in pages
    ]
    for badge in badges:
        expect(badge).to_have_text("running")

    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()

    for badge in badges:
        expect(badge).to_have_text("killed")

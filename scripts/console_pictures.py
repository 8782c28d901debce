#!/usr/bin/env python3
"""Makes the pictures of the console from real runs of the help desk's example. Needs Chromium.

The pictures show a run with an opened call, and two runs next to each other.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RUN = "devhost/docs/images/console.png"
SIDE_BY_SIDE = "devhost/docs/images/console-side-by-side.png"
WIDTH = 1280
HEIGHT = 1000


def make_console() -> None:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - importable only after the path is set

    from support.chromium import chromium  # noqa: PLC0415
    from tests.console.serving import Served  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        runs = Path(made) / "runs"
        runs.mkdir()
        first = runs / "first.jsonl"
        second = runs / "changed.jsonl"
        devhost("run", "--example", "helpdesk", "--scripted", "--trace", str(first))
        devhost("run", "--example", "helpdesk", "--scripted", "--strategy", "gpt5_react", "--trace", str(second))
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        with Served(runs) as console:
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
            page.goto(console.address)
            page.goto(console.url("/runs/first"))
            page.locator("summary", has_text="CALL search_manual").first.click()
            page.get_by_role("heading", name="Arguments").locator("visible=true").first.wait_for()
            page.screenshot(path=ROOT / RUN)
            page.goto(console.url("/compare/first/changed"))
            page.get_by_role("heading", level=1).wait_for()
            page.screenshot(path=ROOT / SIDE_BY_SIDE)
        browser.close()
    print(RUN, SIDE_BY_SIDE, sep="\n")  # noqa: T201 - a command line program prints


def devhost(*arguments: str) -> None:
    subprocess.run(  # noqa: S603 - the project's own command
        [sys.executable, "-m", "devhost", *arguments], cwd=ROOT, stdout=subprocess.DEVNULL, check=True
    )


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "devhost" / "tests")]
    make_console()

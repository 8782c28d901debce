"""A page in headless Chromium: the positions of its elements, and a picture of it."""

import html
import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
SECONDS = 90
MEASURING = """<!doctype html>
<body style="margin: 0">
<iframe srcdoc="%s" style="border: 0; width: %dpx; height: 1000px"></iframe>
<script>
const frame = document.querySelector("iframe");
const box = element => {
  const {left, right, top, bottom} = element.getBoundingClientRect();
  return {label: element.dataset.label, left, right, top, bottom};
};
frame.onload = () => {
  const page = frame.contentDocument;
  document.body.dataset.measured = JSON.stringify({
    bars: [...page.querySelectorAll(".bar")].map(box),
    tracks: [...page.querySelectorAll(".track")].map(box),
    width: page.documentElement.clientWidth,
    needed: page.documentElement.scrollWidth,
  });
};
</script>
"""


def chromium() -> str | None:
    """The program, or None; $CHROMIUM comes before PATH."""
    named = os.environ.get("CHROMIUM")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


def measured(page: Path, width: int) -> Any:  # noqa: ANN401 - JSON, as the browser measured it
    """In a frame, since no window is as narrow as a phone, and since the page itself allows no scripts."""
    around = page.with_suffix(".measured.html")
    around.write_text(MEASURING % (html.escape(page.read_text()), width))
    dom = _run(around, 1280, 1000, ["--dump-dom"])
    found = re.search(r'data-measured="([^"]*)"', dom)
    assert found, dom[-2000:]
    return json.loads(html.unescape(found.group(1)))


def screenshot(page: Path, picture: Path, width: int, height: int) -> None:
    _run(page, width, height, ["--hide-scrollbars", f"--screenshot={picture}"])


def _run(page: Path, width: int, height: int, options: Sequence[str]) -> str:
    program = chromium()
    assert program is not None
    command = [
        program,
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-first-run",
        f"--user-data-dir={page.parent / 'profile'}",
        f"--window-size={width},{height}",
        *options,
        page.as_uri(),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True).stdout

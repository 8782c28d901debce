"""Where Chromium is, and a picture of a page that it takes."""

import os
import shutil
import subprocess
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
SECONDS = 90


def chromium() -> str | None:
    """The program, or None; $CHROMIUM comes before PATH."""
    named = os.environ.get("CHROMIUM")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


def screenshot(page: Path, picture: Path, width: int, height: int) -> None:
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
        "--hide-scrollbars",
        f"--screenshot={picture}",
        page.as_uri(),
    ]
    subprocess.run(command, capture_output=True, timeout=SECONDS, check=True)

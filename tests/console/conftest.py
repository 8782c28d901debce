"""The console in a real browser: `make browser`.

Playwright and the SDK cannot live in one process, because the SDK's import patches sockets and threads, and
the conftest.py above imports the SDK. So these tests run in a pytest of their own: `pytest --confcutdir=tests/console`.

`console` is one console over real traces, `open_page(console)` opens a page of it, `page` is its list of runs.
`open_console(folder)` starts another one. A test waits with playwright's `expect`; its time limit is one that no slow
machine reaches.
"""

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from support.chromium import NAMES, chromium
from support.waiting import PATIENCE
from tests.console.browsing import OpenPage, Pages
from tests.console.recording import record
from tests.console.serving import Served

IS_PATCHED = "gevent.monkey" in sys.modules
collect_ignore_glob = ["test_*.py"] if IS_PATCHED else []
OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")

OpenConsole = Callable[[Path], Served]

if not IS_PATCHED:
    for name in [name for name in os.environ if name.startswith("OPENAI_")]:
        del os.environ[name]
    # A shell that starts a process in its background disables Ctrl-C for it, which its children would inherit.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    expect.set_options(timeout=PATIENCE * 1000)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    reason = f"no browser: none of {', '.join(NAMES)} is on PATH, and CHROMIUM is not set"
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.skipif(chromium() is None, reason=reason))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if IS_PATCHED and any("console" in argument for argument in terminalreporter.config.args):
        terminalreporter.write_line("tests/console need a pytest of their own: --confcutdir=tests/console")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(OPTIONS))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of real traces: helpdesk.jsonl, which called tools and answered, and injection.jsonl."""
    folder = tmp_path_factory.mktemp("recorded")
    record(folder, "helpdesk", "injection")
    return folder


@pytest.fixture(scope="session")
def shared(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The console that all tests use that do not end it."""
    with Served(shutil.copytree(recorded, tmp_path_factory.mktemp("shared") / "runs")) as served:
        yield served


@pytest.fixture
def open_console() -> Iterator[OpenConsole]:
    """Starts `devhost ui` over a folder of runs; it ends with the test."""
    with ExitStack() as ends:
        yield lambda runs: ends.enter_context(Served(runs))


@pytest.fixture
def console(shared: Served, recorded: Path) -> Iterator[Served]:
    """Over copies of the real traces, to which a test may add others."""
    yield shared
    shared.clear()
    shutil.copytree(recorded, shared.runs, dirs_exist_ok=True)


@pytest.fixture
def runs_folder(console: Served) -> Path:
    return console.runs


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """Opens a console's page in a browser context of its own.

    Takes a console, a path (`/`), and what `Browser.new_context` takes, such as `color_scheme` or `viewport`.
    After the test, no page may have met an error of a script, or something that its Content-Security-Policy refused.
    """
    pages = Pages(browser)
    yield pages.open
    pages.close()
    assert pages.problems == []


@pytest.fixture
def page(open_page: OpenPage, console: Served) -> Page:
    return open_page(console)

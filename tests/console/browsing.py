"""Pages of a console in contexts of their own, and what goes wrong in them."""

from typing import Any, Protocol

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

from support.waiting import PATIENCE
from tests.console.serving import Served

REFUSED = ("Content Security Policy", "Refused to")


class OpenPage(Protocol):
    def __call__(self, console: Served, path: str = "/", **options: Any) -> Page: ...  # noqa: ANN401 - playwright's


class Pages:
    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._contexts: list[BrowserContext] = []
        self.problems: list[str] = []

    def open(self, console: Served, path: str = "/", **options: Any) -> Page:  # noqa: ANN401 - playwright's
        context = self._browser.new_context(**options)
        context.set_default_timeout(PATIENCE * 1000)
        self._contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: self.problems.append(f"{page.url}: {error}"))
        page.on("console", self._note)
        page.goto(console.address)  # which leads to the list, and leaves the cookie
        if path != "/":
            page.goto(console.url(path))
        return page

    def close(self) -> None:
        for context in self._contexts:
            context.close()

    def _note(self, message: ConsoleMessage) -> None:
        if message.type == "error" and any(words in message.text for words in REFUSED):
            self.problems.append(message.text)

"""The page of a trace as a browser would take it: the words on it, and that it fetches and runs nothing."""

from html.parser import HTMLParser
from pathlib import Path

from devhost.page.page import render_page
from devhost.trace.lines import read_trace

VILE = "<script>alert(1)</script><img src=x onerror=alert(1)>"


class Page(HTMLParser):
    """What a page would fetch or run, and the words on it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), f"a handler: {name}={value}"
            if tag == "a" and name == "href":
                self.links.append(value or "")
            elif name in {"src", "href", "srcset", "action", "data", "poster"}:
                self.fetched.append(value or "")

    def handle_data(self, data: str) -> None:
        self.text += data


def harmless(html: str, pictures: int = 0) -> Page:
    page = Page(html)
    assert "default-src 'none'" in html
    assert not {"script", "iframe", "object", "embed", "form"} & set(page.tags)
    icon, *embedded = page.fetched
    assert icon == "data:,"  # which a browser would otherwise ask for
    assert len(embedded) == page.tags.count("img") == pictures
    assert all(address.startswith("data:image/png;base64,") for address in embedded)
    assert "@import" not in html
    assert "url(" not in html
    return page


def page_of(trace_file: Path) -> Page:
    return harmless(render_page(read_trace(trace_file)))

"""How a page looks: axe-core finds what violates WCAG 2.2, levels A and AA, and no window makes it scroll sideways."""

from pathlib import Path
from typing import Literal

import axe_core_python
from playwright.sync_api import Page

SCRIPT = Path(axe_core_python.__file__).with_name("axe.min.js")
LEVELS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
WIDTHS = (360, 620, 860, 1280, 1920)
LOOKS: tuple[tuple[Literal["light", "dark"], int], ...] = (("light", 1280), ("dark", 360))
"""Each scheme and each layout once: colours do not depend on the width."""


def looks_well(page: Page) -> None:
    page.wait_for_load_state()  # with its style sheet
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert overflow(page) == 0, width
    for scheme, width in LOOKS:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        assert axe(page) == [], (scheme, width)


def open_all(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")


def axe(page: Page) -> list[str]:
    """A line for each element that violates a rule: the rule, the element, what is wrong.

    The script comes through the debugger, which the page's Content-Security-Policy does not refuse.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(SCRIPT.read_text(encoding="utf-8"))
    found = page.evaluate(
        "levels => axe.run(document, {runOnly: {type: 'tag', values: levels}, resultTypes: ['violations']})",
        [*LEVELS],
    )
    return [
        f"{violation['id']}: {' '.join(node['target'])}: {' '.join(node['failureSummary'].split())}"
        for violation in found["violations"]
        for node in violation["nodes"]
    ]


def overflow(page: Page) -> int:
    """By how many pixels the page is wider than its window; 0 without horizontal scrolling.

    The window's width is that of the body, because the page keeps room for the vertical scroll bar.
    """
    needed: float = page.evaluate(
        "document.documentElement.scrollWidth - document.body.getBoundingClientRect().right - scrollX"
    )
    return max(0, round(needed))

"""axe-core on a page: what violates WCAG 2.1, levels A and AA."""

from pathlib import Path

import axe_core_python
from playwright.sync_api import Page

SCRIPT = Path(axe_core_python.__file__).with_name("axe.min.js")
LEVELS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa")


def axe(page: Page, *more: str) -> list[str]:
    """A line for each element that violates a rule: the rule, the element, what is wrong.

    `more`: tags of further rules, such as "best-practice".
    The script comes through the debugger, which the page's Content-Security-Policy does not refuse.
    """
    page.evaluate(SCRIPT.read_text(encoding="utf-8"))
    found = page.evaluate(
        "levels => axe.run(document, {runOnly: {type: 'tag', values: levels}, resultTypes: ['violations']})",
        [*LEVELS, *more],
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

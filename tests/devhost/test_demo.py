"""`make demo`: what it runs, and that docs/first-workflow.md shows what it prints."""

import re

import pytest

from devhost.cli.commands import main
from tests.devhost import ROOT

KEY = {"OPENAI_API_KEY": "sk-proj-0123456789"}
RUN = ["run", "--example", "helpdesk"]
SECONDS = re.compile(r"\d+\.\d+ s\b")
RULE = re.compile("─+")


@pytest.mark.usefixtures("without_pauses", "lent_plugins")
def test_the_first_page_shows_what_the_demo_prints_with_a_key_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Line by line and in this order; lines are left out, and `…` at the end of one leaves out its rest."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY["OPENAI_API_KEY"])
    monkeypatch.chdir(ROOT)
    assert main([*RUN, "--scripted", "--no-color"]) == 0

    printed = _normal(capsys.readouterr().out)
    page = (ROOT / "docs" / "first-workflow.md").read_text(encoding="utf-8")
    shown = page.partition("<!-- demo output -->\n```text\n")[2].partition("```\n<!-- /demo output -->")[0]

    missing = []
    for line in _normal(shown):
        found = next((place for place, other in enumerate(printed) if _shows(line, other)), None)
        if found is not None:
            printed = printed[found + 1 :]
        elif line != "…":
            missing.append(line)
    assert missing == []
    assert len(_normal(shown)) > 10


def _normal(text: str) -> list[str]:
    """Without what differs from run to run and from width to width."""
    return [RULE.sub("─", SECONDS.sub("0 s", line)).rstrip() for line in text.splitlines()]


def _shows(shown: str, printed: str) -> bool:
    return printed.startswith(shown[:-1]) if shown.endswith("…") else printed == shown

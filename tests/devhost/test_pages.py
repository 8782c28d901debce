"""Pages of docs: one shows what `make demo` prints, and the changes of write-a-strategy.md do what it says."""

import re
from pathlib import Path

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
    if shown.endswith("…"):
        return printed.startswith(shown[:-1])
    return printed == shown


def snippet(language: str, holding: str) -> str:
    """The block of docs/write-a-strategy.md that has this text."""
    page = (ROOT / "docs" / "write-a-strategy.md").read_text(encoding="utf-8")
    (found,) = [block for block in re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL) if holding in block]
    return str(found)


@pytest.mark.processes
def test_the_changes_that_the_walk_through_makes_do_what_it_says(tmp_path: Path) -> None:
    plugin = tmp_path / "my_strategy"
    trace = tmp_path / "run.jsonl"
    assert main(["init", "strategy", "my_strategy", "--folder", str(plugin)]) == 0
    code = plugin / "strategies" / "my_strategy.py"
    rule = snippet("python", "SystemPromptMessage")
    field = '    tone: str = "friendly"\n'
    source = code.read_text(encoding="utf-8")
    changed = source.replace(
        "            SystemPromptMessage(content=given.instruction),\n", f"            {rule.strip()},\n"
    )
    changed = changed.replace("Answer in one sentence.", "Answer in one {given.tone} sentence.")
    code.write_text(changed.replace("    query: str\n", f"    query: str\n{field}"), encoding="utf-8")
    declaration = plugin / "strategies" / "my_strategy.yaml"
    panel = declaration.read_text(encoding="utf-8")
    panel = panel.replace("output_schema:", f"{snippet('yaml', 'name: tone')}output_schema:")
    declaration.write_text(panel, encoding="utf-8")

    script = str(plugin / "scenarios" / "hello.yaml")
    asked = ["run", "--plugin", str(plugin), "--script", script, "--param", "tone=formal", "--trace", str(trace)]

    assert main([*asked, "--scripted"]) == 0
    assert "You are a helpful agent.\\nAnswer in one formal sentence." in trace.read_text(encoding="utf-8")

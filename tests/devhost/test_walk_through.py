"""docs/write-a-strategy.md: what it changes in a new plugin does what it says."""

import re
from pathlib import Path

import pytest

from devhost.cli.commands import main
from tests.devhost import ROOT


def snippet(language: str, holding: str) -> str:
    """The block of docs/write-a-strategy.md that has this text."""
    page = (ROOT / "docs" / "write-a-strategy.md").read_text(encoding="utf-8")
    (found,) = [block for block in re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL) if holding in block]
    return str(found)


@pytest.mark.processes
def test_the_changes_that_the_walk_through_makes_do_what_it_says(tmp_path: Path) -> None:
    plugin, trace = tmp_path / "my_strategy", tmp_path / "run.jsonl"
    assert main(["init", "strategy", "my_strategy", "--folder", str(plugin)]) == 0
    code = plugin / "strategies" / "my_strategy.py"
    rule, field = snippet("python", "SystemPromptMessage"), '    tone: str = "friendly"\n'
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

"""`devhost check` and `devhost list` over the plugins of this repository, and the page that lists their rules."""

from pathlib import Path

import pytest
import yaml

from devhost.cli.commands import main
from devhost.plugin.check import check_plugin
from tests.devhost import ROOT

EXAMPLES = [manifest.parent for manifest in sorted((ROOT / "examples").glob("*/manifest.yaml"))]


@pytest.mark.parametrize("plugin", EXAMPLES, ids=lambda path: path.name)
def test_an_example_has_no_refusal(plugin: Path) -> None:
    assert check_plugin(plugin).refusals == ()


def test_a_strategy_plugins_list_has_a_line_for_each_thing(capsys: pytest.CaptureFixture[str]) -> None:
    version = yaml.safe_load((ROOT / "manifest.yaml").read_text("utf-8"))["version"]
    assert main(["list", str(ROOT), "--no-color"]) == 0
    lines = capsys.readouterr().out.splitlines()
    beginnings = [line.partition("  ")[0] for line in lines if not line.startswith(" ")]
    expected = [
        f"plugin gpt5-agents/gpt5_agent {version}",
        "strategy gpt5_react",
        "example helpdesk",
        "scenario helpdesk/two-topics",
    ]
    assert [name for name in beginnings if name in expected] == expected
    assert "    maximum_iterations          number, at least 1, at most 100, default 6  Max iterations" in lines

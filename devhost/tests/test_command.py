"""The command `devhost`: where it works, and which plugin it takes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from devhost.cli.commands import main
from devhost.plugin.declaration import nearest_strategy_plugin
from support.plugins import PUPPET, TOOLBOX
from support.waiting import PATIENCE

SCRIPT = TOOLBOX / "script.yaml"


@pytest.mark.processes
def test_the_command_works_from_any_folder_and_through_a_link(tmp_path: Path) -> None:
    linked = tmp_path / "a link"
    linked.symlink_to(Path(sys.executable).with_name("devhost"))

    command = [str(linked), "run", "--script", str(SCRIPT), "--query", '[{"say": "from a folder below"}]', "--no-color"]
    ended = subprocess.run(
        command, cwd=PUPPET / "strategies", capture_output=True, text=True, timeout=PATIENCE, check=False
    )

    assert ended.returncode == 0, ended.stderr
    assert "strategy  puppet" in ended.stdout
    assert "from a folder below" in ended.stdout


def test_the_plugin_is_by_default_the_nearest_with_strategies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool plugin, a file of another kind and one that is not YAML lie on the way."""
    folder = tmp_path
    for name, manifest in [
        ("plugin", "plugins: {agent_strategies: [a.yaml]}"),
        ("tools", "plugins: {tools: [b.yaml]}"),
        ("cluster", "kind: Deployment"),
        ("broken", "- ]"),
    ]:
        folder = folder / name
        folder.mkdir()
        (folder / "manifest.yaml").write_text(manifest)

    monkeypatch.chdir(folder)
    assert nearest_strategy_plugin() == tmp_path / "plugin"
    monkeypatch.chdir(tmp_path / "plugin")
    assert nearest_strategy_plugin() == tmp_path / "plugin"


def test_a_variable_names_the_plugin_in_place_of_the_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "manifest.yaml").write_text("- ]")
    monkeypatch.chdir(tmp_path)
    assert main(["run", "--script", str(SCRIPT)]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"no strategy plugin was found: neither {tmp_path} nor a folder above it has a manifest.yaml" in said
    assert "Name the plugin's folder (--plugin DIR), set DEVHOST_PLUGIN" in said
    assert "manifest.yaml is not valid YAML" in said
    monkeypatch.setenv("DEVHOST_PLUGIN", str(PUPPET))
    assert main(["check"]) == 0
    assert main(["list"]) == 0
    assert "strategy puppet" in capsys.readouterr().out


@pytest.mark.usefixtures("lent_plugins")
def test_a_script_for_a_strategy_that_the_plugin_lacks_runs_its_first_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    turns = [{"text": "unused"}]
    script = {"strategy": "other", "query": '[{"say": "hi"}]', "params": {"goal": "x"}, "turns": turns}
    (tmp_path / "script.yaml").write_text(yaml.safe_dump(script))

    assert main(["run", "--plugin", str(PUPPET), "--script", str(tmp_path / "script.yaml"), "--json"]) == 0

    told = json.loads(capsys.readouterr().out)
    assert told["text"] == "hi"
    (notice,) = told["notices"]
    assert notice == "the script is written for other, which the plugin does not have: puppet runs, without goal"


@pytest.mark.usefixtures("lent_plugins")
@pytest.mark.parametrize("folder", ["plugin", "other plugin"])
def test_examples_are_the_plugins_own_or_devhosts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    plugin = tmp_path / folder
    plugin.mkdir()
    for path in PUPPET.iterdir():
        (plugin / path.name).symlink_to(path)
    if folder == "plugin":
        (plugin / "examples").symlink_to(TOOLBOX.parent)
    monkeypatch.chdir(plugin)
    assert main(["run", "--example", "none"]) == 2
    offered = capsys.readouterr().err
    assert ("toolbox" in offered, "helpdesk" in offered) == (folder == "plugin", folder != "plugin")

"""`devhost check` and `devhost list`: any plugin, from any folder, without starting it."""

from pathlib import Path

import pytest

from devhost.cli.commands import main
from support.breaches import broken
from support.plugins import TOOLBOX


def test_the_command_tells_every_fault_and_exits_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugin = broken(TOOLBOX, tmp_path, "tools/repeat.yaml", "parameters.1.type", "integer")
    (plugin / "tools" / "draw.yaml").write_text("identity: [")
    assert main(["check", str(plugin), "--no-color"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"plugin {plugin}"
    assert lines[1].startswith("tools/repeat.yaml: parameters[1].type: Input should be")
    assert lines[2].startswith("tools/draw.yaml: ")
    assert lines[-1] == "2 refusals in 4 declarations and 14 files"


def test_both_find_the_nearest_plugin_of_any_kind(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(TOOLBOX / "tools")
    assert main(["check", "--no-color"]) == 0
    assert main(["list", "--no-color"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "4 declarations and 14 files, as Dify takes them" in lines
    listed = lines.index(f"plugin devhost-tests/toolbox 0.0.1  {TOOLBOX}")
    assert lines[listed + 1].startswith("tool toolbox/repeat  Says a word several times")


@pytest.mark.parametrize("command", ["check", "list"])
def test_a_folder_without_a_plugin_is_a_mistake(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([command]) == 2
    assert main([command, str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "no plugin was found" in said
    assert "manifest.yaml is missing" in said


def test_kinds_of_providers_without_rules_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugin = broken(TOOLBOX, tmp_path, "manifest.yaml", "plugins.endpoints", ["group/x.yaml"])
    broken_too = broken(plugin, tmp_path / "again", "manifest.yaml", "plugins.models", ["provider/y.yaml"])
    assert main(["check", str(broken_too), "--no-color"]) == 0
    said = capsys.readouterr().out
    assert "not checked: models, endpoints (devhost has rules for the manifest, tools and strategies only)\n" in said

"""The package of an example is complete, holds nothing that a run leaves, and has its texts in every language."""

from pathlib import Path

import pytest
import yaml

from devhost.package import packed, unpack
from devhost.plugin.contents import Contents, IgnoreRules
from devhost.plugin.declaration import PluginDeclaration
from scripts.stage import stage_example
from tests.support.pages import ROOT

from .conftest import EXAMPLES
from .stdio_plugin import StdioPlugin

PLUGINS = sorted(file.parent for file in (ROOT / "examples").glob("*/.difyignore"))
LEFT = ("data/store.sqlite3", ".pytest_cache/README.md", ".env", "tools/__pycache__/tool.pyc")


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.name)
@pytest.mark.parametrize("left", LEFT)
def test_what_a_run_leaves_is_not_packaged(plugin: Path, left: str) -> None:
    ignored = IgnoreRules.of((plugin / ".difyignore").read_text(encoding="utf-8"))
    folders = [left[:place] for place, letter in enumerate(left) if letter == "/"]
    assert ignored.leaves_out(left, is_folder=False) or any(ignored.leaves_out(f, is_folder=True) for f in folders)


def test_every_example_that_is_a_plugin_says_what_is_not_packaged() -> None:
    assert sorted(file.parent for file in (ROOT / "examples").glob("*/manifest.yaml")) == PLUGINS


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.name)
def test_the_plugin_starts_from_its_package_alone(plugin: Path, tmp_path: Path) -> None:
    """Whatever it shares with other examples is in it: starting a plugin imports each of its tools."""
    stage_example(plugin.name, tmp_path / "staged")
    package = tmp_path / "plugin.difypkg"
    package.write_bytes(packed(Contents.of(tmp_path / "staged")))
    unpack(package, tmp_path / "opened")

    with StdioPlugin(tmp_path / "opened", {}) as started:
        assert started.manifest["name"] == PluginDeclaration.read(plugin).manifest.name


def test_what_examples_share_stands_once_and_a_package_has_only_what_it_uses(tmp_path: Path) -> None:
    assert [layer.parent.name for layer in (ROOT / "examples").glob("*/tool_layer")] == ["shared"]
    stage_example("helpdesk", tmp_path)
    assert [(tmp_path / name).is_dir() for name in ("meaning", "tool_layer")] == [True, False]


FILES = sorted(file for part in ("manifest", "provider/*", "tools/*") for file in EXAMPLES.glob(f"*/{part}.yaml"))

LANGUAGES = {"en_US", "ja_JP", "zh_Hans", "pt_BR"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(EXAMPLES)))
def test_every_visible_text_is_there_in_every_language(file: Path) -> None:
    fields = _fields(yaml.safe_load(file.read_text(encoding="utf-8")))
    assert fields
    for path, texts in fields.items():
        assert set(texts) == LANGUAGES, path
        assert all(text.strip() for text in texts.values()), path


def _fields(value: object, path: str = "") -> dict[str, dict[str, str]]:
    if isinstance(value, dict):
        if "en_US" in value:
            return {path: value}
        return {at: field for key, item in value.items() for at, field in _fields(item, f"{path}.{key}").items()}
    if isinstance(value, list):
        return {at: field for n, item in enumerate(value) for at, field in _fields(item, f"{path}[{n}]").items()}
    return {}

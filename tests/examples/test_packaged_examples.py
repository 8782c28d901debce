"""The package of an example holds nothing that a run of it leaves in its folder."""

from pathlib import Path

import pytest

from devhost.plugin.contents import Ignored
from tests.support.pages import ROOT

PLUGINS = sorted(file.parent for file in (ROOT / "examples").glob("*/.difyignore"))
LEFT = ("data/store.sqlite3", ".pytest_cache/README.md", ".env", "tools/__pycache__/tool.pyc")


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.name)
@pytest.mark.parametrize("left", LEFT)
def test_what_a_run_leaves_is_not_packaged(plugin: Path, left: str) -> None:
    ignored = Ignored.of((plugin / ".difyignore").read_text(encoding="utf-8"))
    folders = [left[:place] for place, letter in enumerate(left) if letter == "/"]
    assert ignored.leaves_out(left, is_folder=False) or any(ignored.leaves_out(f, is_folder=True) for f in folders)


def test_every_example_that_is_a_plugin_says_what_is_not_packaged() -> None:
    assert sorted(file.parent for file in (ROOT / "examples").glob("*/manifest.yaml")) == PLUGINS

"""Plugin directories as data, and the errors for broken ones."""

import shutil
from pathlib import Path

import pytest

from devhost.errors import DeclarationError
from devhost.plugin.declaration import PluginDeclaration
from support.plugins import PUPPET


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        ("manifest.yaml", "author: devhost-tests", "", r"manifest\.yaml: author: Field required"),
        ("manifest.yaml", "entrypoint: main", "entry: main", r"meta\.runner\.entrypoint: Field required"),
        ("manifest.yaml", "type: plugin", "type: [", r"manifest\.yaml is not valid YAML"),
        ("manifest.yaml", "provider/puppet.yaml", "provider/other.yaml", r"other\.yaml cannot be read"),
        ("provider/puppet.yaml", "strategies:", "strategy:", "strategies must be a list of paths"),
        (
            "manifest.yaml",
            "author: devhost-tests",
            "author: !!bool maybe",
            r"manifest\.yaml contains a value that YAML",
        ),
        (
            "strategies/puppet.yaml",
            "type: number",
            "kind: number",
            r"puppet\.yaml: parameters\[3\]\.type: Field required",
        ),
    ],
)
def test_an_error_names_file_and_key(tmp_path: Path, file: str, old: str, new: str, words: str) -> None:
    plugin = tmp_path / "puppet"
    shutil.copytree(PUPPET, plugin)
    text = (plugin / file).read_text(encoding="utf-8")
    assert old in text
    (plugin / file).write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(DeclarationError, match=words):
        PluginDeclaration.read(plugin)

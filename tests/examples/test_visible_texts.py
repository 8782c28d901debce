"""The texts of the plugins' YAML that people read in their own language."""

from pathlib import Path

import pytest
import yaml

from .conftest import EXAMPLES

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

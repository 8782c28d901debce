"""The texts of a plugin's YAML that people read in their own language."""

from pathlib import Path

import yaml

LANGUAGES = {"en_US", "ja_JP", "zh_Hans", "pt_BR"}


def check_languages(file: Path) -> None:
    """Every visible text of the file is there in every language."""
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

"""YAML files as dictionaries, and pydantic's errors as sentences that name the key."""

from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from devhost.errors import DeclarationError

FAST: type[yaml.SafeLoader | yaml.CSafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's, which every wheel of PyYAML contains: about ten times as fast."""
DEEPEST = 100
"""Levels that libyaml's loader may read: it recurses in C, and many thousands of levels end the process."""


def load_yaml(file: Path) -> dict[str, Any]:
    data = read_yaml(file)
    if not isinstance(data, dict):
        raise DeclarationError(f"{file} must contain keys and values")
    return data


def read_yaml(file: Path) -> object:
    """Whatever the file contains."""
    try:
        data = _loaded(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise DeclarationError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DeclarationError(f"{file} is not UTF-8, as its byte {error.start + 1} shows: save it as UTF-8") from error
    except RecursionError as error:
        raise DeclarationError(f"{file} is nested too deeply to be read") from error
    except yaml.YAMLError as error:
        raise DeclarationError(f"{file} is not valid YAML: {error}") from error
    except (ValueError, LookupError, AttributeError) as error:
        # What PyYAML's own readers of a date, a number or a tag let through: 2020-13-45, !!bool maybe.
        raise DeclarationError(f"{file} contains a value that YAML cannot convert: {error}") from error
    return data


def _loaded(text: str) -> object:
    """PyYAML's own loader reads what is nested deeply, and says what is wrong with what is not YAML."""
    try:
        if _depth(text) <= DEEPEST:
            return yaml.load(text, Loader=FAST)  # noqa: S506 - a safe loader, too
    except yaml.YAMLError:
        pass
    return yaml.safe_load(text)


def _depth(text: str) -> int:
    levels = 0, 0
    for event in yaml.parse(text, Loader=FAST):
        change = isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        levels = levels[0] + change, max(levels)
    return levels[1]


def describe(error: ValidationError) -> str:
    """The findings on one line each: `parameters[2].type: Field required`."""
    lines = []
    for finding in error.errors():
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in finding["loc"]).lstrip(".")
        lines.append(f"{path}: {finding['msg']}" if path else finding["msg"])
    return "; ".join(lines)

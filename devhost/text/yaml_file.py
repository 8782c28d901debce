"""YAML files as dictionaries, and pydantic's errors as sentences that name the key.

What a file asks of the reader is bounded: 5 MiB, 100 levels, and a million values once each alias is written out.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from devhost.errors import DeclarationError
from devhost.text.user_file import read_file

FAST: type[yaml.SafeLoader | yaml.CSafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's, which every wheel of PyYAML contains: about ten times as fast."""
HALF_A_PAIR = re.compile(r"\\u[dD][89a-fA-F]")
"""Escaped in a recorded script, if a model wrote one. libyaml refuses it, PyYAML's own loader does not."""
DEEPEST = 100
"""Levels. libyaml takes minutes for some thousands in one line, and its loader ends the process at many thousands."""
MOST_VALUES = 1_000_000
"""Ten lines of aliases of aliases can stand for thousands of millions of values."""


def load_yaml(file: Path) -> dict[str, Any]:
    data = read_yaml(file)
    if not isinstance(data, dict):
        raise DeclarationError(f"{file} must contain keys and values")
    return data


def read_yaml(file: Path) -> object:
    """Whatever the file contains."""
    try:
        text = read_file(file).decode()
        loader = yaml.SafeLoader if HALF_A_PAIR.search(text) else FAST
        _refuse_what_costs(file, yaml.parse(text, Loader=loader))
        data: object = yaml.load(text, Loader=loader)  # noqa: S506 - both are safe
    except OSError as error:
        raise DeclarationError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DeclarationError(f"{file} is not UTF-8, as its byte {error.start + 1} shows: save it as UTF-8") from error
    except yaml.YAMLError as error:
        raise DeclarationError(f"{file} is not valid YAML: {error}") from error
    except (ValueError, LookupError, AttributeError) as error:
        # What PyYAML's own readers of a date, a number or a tag let through: 2020-13-45, !!bool maybe.
        raise DeclarationError(f"{file} contains a value that YAML cannot convert: {error}") from error
    return data


def _refuse_what_costs(file: Path, events: Iterable[yaml.Event]) -> None:
    """Reads the file piece by piece, and no further than its first part that is too much."""
    around = [("", 0, 0)]
    """The collections around the place that is read: anchor, values so far, and levels below it."""
    known = dict[str, tuple[int, int]]()
    """Values and levels, by anchor."""
    for event in events:
        values, levels = 0, 0
        match event:
            case yaml.CollectionStartEvent():
                around.append((event.anchor or "", 1, 1))
            case yaml.CollectionEndEvent():
                name, values, levels = around.pop()
                known[name] = values, levels
            case yaml.AliasEvent():
                values, levels = known.get(event.anchor or "", (1, 0))
            case yaml.ScalarEvent():
                values = 1
        name, before, below = around[-1]
        around[-1] = name, before + values, max(below, levels + 1)
        if len(around) - 1 + levels > DEEPEST:
            raise DeclarationError(f"{file} is nested too deeply to be read: at most {DEEPEST} levels")
        if before + values > MOST_VALUES:
            raise DeclarationError(f"{file} stands for more than {MOST_VALUES:,} values")


def describe(error: ValidationError) -> str:
    """The findings on one line each: `parameters[2].type: Field required`."""
    lines = []
    for finding in error.errors():
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in finding["loc"]).lstrip(".")
        lines.append(f"{path}: {finding['msg']}" if path else finding["msg"])
    return "; ".join(lines)

"""The plugin that a person works on: in the folder that was named, or the nearest one above a folder."""

import contextlib
from pathlib import Path
from typing import Any

from devhost.errors import DeclarationError, ParameterError
from devhost.text import load_yaml

MANIFEST = "manifest.yaml"


def plugin_in(folder: Path) -> Path:
    """The folder; DeclarationError if it has no manifest."""
    if not (folder / MANIFEST).is_file():
        raise DeclarationError(f"{folder} is not a plugin: {MANIFEST} is missing")
    return folder


def nearest_strategy_plugin(start: Path) -> Path:
    """`start` or the nearest folder above it whose manifest.yaml names agent strategies; ParameterError without one.

    Other plugins and files that only have the same name are passed over.
    """
    start = start.resolve()
    invalid = []
    for folder in (start, *start.parents):
        if not (folder / MANIFEST).is_file():
            continue
        try:
            manifest = load_yaml(folder / MANIFEST)
        except DeclarationError as error:
            invalid.append(f"; {error}")
            continue
        if _has_strategies(manifest):
            return folder
    raise ParameterError(
        f"no strategy plugin was found: neither {start} nor a folder above it has a {MANIFEST} with agent_strategies. "
        f"Give --plugin DIR, or run devhost in the plugin's folder{''.join(invalid)}"
    )


def nearest_plugin(start: Path) -> Path:
    """`start` or the nearest folder above it that has the manifest of any plugin; ParameterError without one."""
    start = start.resolve()
    for folder in (start, *start.parents):
        with contextlib.suppress(DeclarationError):
            if (folder / MANIFEST).is_file() and isinstance(load_yaml(folder / MANIFEST).get("plugins"), dict):
                return folder
    raise ParameterError(f"no plugin was found: neither {start} nor a folder above it has a plugin's {MANIFEST}")


def _has_strategies(manifest: dict[str, Any]) -> bool:
    plugins = manifest.get("plugins")
    return isinstance(plugins, dict) and bool(plugins.get("agent_strategies"))

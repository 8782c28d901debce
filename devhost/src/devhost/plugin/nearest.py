"""The plugin that a person works on: in the folder that was named, or the nearest one above a folder."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from devhost.errors import DeclarationError, ParameterError
from devhost.text import load_yaml

MANIFEST = "manifest.yaml"
FOLDER = "DEVHOST_PLUGIN"
"""A variable of the environment: the plugin's folder, in place of the current one."""


def _here() -> Path:
    return Path(os.environ.get(FOLDER, "").strip() or ".")


def plugin_in(folder: Path) -> Path:
    """The folder; DeclarationError if it has no manifest."""
    if not (folder / MANIFEST).is_file():
        raise DeclarationError(f"{folder} is not a plugin: {MANIFEST} is missing")
    return folder


def nearest_strategy_plugin(start: Path | None = None) -> Path:
    """The nearest folder whose manifest.yaml names agent strategies; ParameterError without one.

    `start` itself or a folder above it; by default $DEVHOST_PLUGIN, or else the current folder.
    Other plugins and files that only have the same name are passed over.
    """
    start, invalid = start or _here(), list[str]()
    found = next((folder for folder, plugins in _plugins(start, invalid) if plugins.get("agent_strategies")), None)
    if found is None:
        raise ParameterError(
            f"no strategy plugin was found: neither {start.resolve()} nor a folder above it has a {MANIFEST} with "
            f"agent_strategies. Give --plugin DIR, set {FOLDER}, or run devhost in the plugin's folder"
            f"{''.join(invalid)}"
        )
    return found


def nearest_plugin(start: Path | None = None) -> Path:
    """As `nearest_strategy_plugin`, with the manifest of any plugin."""
    start = start or _here()
    found = next((folder for folder, _ in _plugins(start, [])), None)
    if found is None:
        raise ParameterError(
            f"no plugin was found: neither {start.resolve()} nor a folder above it has a plugin's {MANIFEST}. "
            f"Name the plugin's folder, set {FOLDER}, or run devhost in it"
        )
    return found


def _plugins(start: Path, invalid: list[str]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Each plugin's folder, from `start` up, with what it provides; `invalid` gets what was wrong with a manifest."""
    for folder in (start.resolve(), *start.resolve().parents):
        if (folder / MANIFEST).is_file():
            try:
                plugins = load_yaml(folder / MANIFEST).get("plugins")
            except DeclarationError as error:
                invalid.append(f"; {error}")
                continue
            if isinstance(plugins, dict):
                yield folder, plugins

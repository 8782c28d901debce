"""`--watch`: the same command again whenever a file of the plugin, its tools or the script changes."""

import os
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import click
from watchfiles import Change, DefaultFilter, run_process

from devhost.home import devhost_command

WATCH = "--watch"
SOURCES = frozenset({".py", ".yaml", ".yml", ".toml", ".txt", ".md", ".html", ".json", ".jinja", ".j2", ".env"})
"""What a person edits; a run writes databases, traces and files of other types."""


class _Sources(DefaultFilter):
    def __call__(self, change: Change, path: str) -> bool:
        return Path(path).suffix in SOURCES and super().__call__(change, path)


def run_again_on_changes(arguments: Sequence[str], paths: Iterable[Path]) -> int:
    """Until Ctrl-C. `arguments`: the command's, with --watch; `paths`: files and folders."""
    command = devhost_command(sys.executable, [each for each in arguments if each != WATCH])
    watched = list(dict.fromkeys(path.resolve() for path in paths))
    click.echo(f"watching {', '.join(map(_below_here, watched))}; Ctrl-C ends", err=True)
    run_process(
        *watched,
        target=shlex.join(command),
        target_type="command",
        callback=_tell,
        watch_filter=_Sources(),
        debounce=400,  # milliseconds: an editor writes a file in several steps
    )
    return 0


def _tell(changes: set[tuple[Change, str]]) -> None:
    names = sorted({_below_here(Path(path)) for _, path in changes})
    click.echo(f"\nchanged: {', '.join(names)}", err=True)


def _below_here(path: Path) -> str:
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)

"""`--watch`: the same command again whenever a file of the plugin, its tools or the script changes."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click
from watchfiles import Change, DefaultFilter, watch

from devhost.home import devhost_command
from devhost.text.user_file import real_path

WATCH = "--watch"
SOURCES = frozenset({".py", ".yaml", ".yml", ".toml", ".txt", ".md", ".html", ".json", ".jinja", ".j2", ".env"})
"""What a person edits; a run writes databases, traces and files of other types."""
LOOK_MILLISECONDS = 200
"""How often it looks whether the run is over."""
PATIENCE_SECONDS = 5
"""For a run that was asked to end."""


class _Sources(DefaultFilter):
    def __call__(self, change: Change, path: str) -> bool:
        return Path(path).suffix in SOURCES and super().__call__(change, path)


def run_again_on_changes(arguments: Sequence[str], paths: Iterable[Path]) -> int:
    """Until Ctrl-C. `arguments`: the command's, with --watch; `paths`: files and folders."""
    command = devhost_command(sys.executable, [each for each in arguments if each != WATCH])
    watched = list(dict.fromkeys(real_path(path) for path in paths))
    places = ", ".join(map(_below_here, watched))
    click.echo(f"watching {places}: a changed file runs the command again, Ctrl-C ends it", err=True)
    process = subprocess.Popen(command)
    is_over = False
    try:
        for changes in _changes(watched):
            if changes:
                _tell(changes)
                _end(process)
                process, is_over = subprocess.Popen(command), False
            elif not is_over and process.poll() is not None:
                is_over = True
                click.echo(f"\nwaiting for a change in {places}; Ctrl-C ends", err=True)
    except KeyboardInterrupt:
        return 0
    finally:
        _end(process)
    return 0


def _changes(watched: Sequence[Path]) -> Iterator[set[tuple[Change, str]]]:
    """Empty sets while nothing changes.

    Not `run_process`: it writes lines of its own, and does not say when a run is over.
    """
    return watch(
        *watched,
        watch_filter=_Sources(),
        debounce=400,  # milliseconds: an editor writes a file in several steps
        rust_timeout=LOOK_MILLISECONDS,
        yield_on_timeout=True,
    )


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGINT)
    try:
        process.wait(PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _tell(changes: set[tuple[Change, str]]) -> None:
    names = sorted({_below_here(Path(path)) for _, path in changes})
    click.echo(f"\nchanged: {', '.join(names)}", err=True)


def _below_here(path: Path) -> str:
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)

"""`devhost init`: the folder of a new plugin, from the templates beside this module."""

import re
import shlex
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

import click
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from devhost.errors import ParameterError
from devhost.options import DIRECTORY, argument, option, takes
from devhost.words import examples

type Kind = Literal["strategy", "tool"]

TEMPLATES = Path(__file__).parent / "templates"
SUFFIX = ".jinja"
NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
"""Of a plugin and of a Python module; the daemon takes `^[a-z0-9_-]{1,128}$` for a plugin."""
AUTHOR = re.compile(r"[a-z0-9_-]{1,64}")
"""The daemon's pattern."""


SDK = "0.10.2"
"""The version that a new plugin asks for, where devhost's environment has none (November 2026)."""


@dataclass(frozen=True)
class NewPlugin:
    kind: Kind
    name: str
    author: str
    folder: Path

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ParameterError(
                f"{self.name!r} cannot be a plugin's name: small letters, digits and _ can stand in it, a letter first"
            )
        if not AUTHOR.fullmatch(self.author):
            raise ParameterError(f"--author {self.author!r} must be small letters, digits, _ and -, 64 at most")

    def write(self) -> list[Path]:
        """The files that were written; ParameterError if the folder has anything in it."""
        if self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
            raise ParameterError(f"{self.folder} exists and is not empty: name another folder")
        home = TEMPLATES / self.kind
        environment = Environment(  # noqa: S701 - nothing of it is HTML
            loader=FileSystemLoader(home), undefined=StrictUndefined, keep_trailing_newline=True
        )
        environment.filters["quote"] = shlex.quote  # of a word in a command that a person pastes
        values = self._values()
        written = []
        for template in sorted(path for path in home.rglob(f"*{SUFFIX}") if path.is_file()):
            name = template.relative_to(home).as_posix()
            file = self.folder / environment.from_string(name.removesuffix(SUFFIX)).render(values)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(environment.get_template(name).render(values), encoding="utf-8")
            written.append(file)
        return written

    def _values(self) -> dict[str, str]:
        words = self.name.split("_")
        python = Path(sys.executable)
        return {
            "name": self.name,
            "author": self.author,
            "title": " ".join(words).strip().capitalize(),
            "class_name": "".join(word.capitalize() for word in words),
            "today": datetime.now(UTC).date().isoformat(),
            "sdk": _sdk(),
            "devhost": str(python.with_name("devhost")),
            "python": str(python),
            "folder": str(self.folder.resolve()),
        }


def _sdk() -> str:
    try:
        return version("dify_plugin")
    except PackageNotFoundError:
        return SDK


@dataclass(frozen=True)
class InitOptions:
    kind: Kind = argument(type=click.Choice(["strategy", "tool"]))
    name: str = argument()
    folder: Path | None = option(
        "--folder",
        metavar="DIR",
        type=DIRECTORY,
        help="Where the plugin is written; by default a folder with its name.",
    )
    author: str = option(
        "--author", metavar="NAME", default="me", show_default=True, help="Your name in Dify's marketplace."
    )


@click.command(epilog=examples("devhost init strategy my_strategy", "devhost init tool my_tool --author my-name"))
@takes(InitOptions)
def init(options: InitOptions) -> int:
    """Write a new plugin that runs, with a scenario and a test."""
    plugin = NewPlugin(options.kind, options.name, options.author, options.folder or Path(options.name))
    for file in plugin.write():
        click.echo(file)
    click.echo(f"\nREADME.md in {plugin.folder} says how to run it.")
    return 0

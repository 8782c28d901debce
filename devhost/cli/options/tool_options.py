"""The options that several commands have about tools and plugins; only the words of help differ."""

from collections.abc import Callable
from pathlib import Path

import click

DIRECTORY = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
CREDENTIAL = "A credential of a tool provider; else the variable PROVIDER_KEY, upper case, is read. Repeatable."
PLUGIN = "The strategy plugin; by default the nearest one in or above the current folder."

type Option = Callable[[Callable[..., int]], Callable[..., int]]


def tools_option(words: str) -> Option:
    return click.option("--tools", metavar="DIR", type=DIRECTORY, multiple=True, help=words)


def credential_option(words: str = CREDENTIAL) -> Option:
    return click.option("--credential", "credentials", metavar="PROVIDER.KEY=VALUE", multiple=True, help=words)


def set_option(words: str) -> Option:
    """A parameter of a tool as the node's panel has it."""
    return click.option("--set", "settings", metavar="TOOL.PARAM=VALUE", multiple=True, help=words)


def file_option(words: str) -> Option:
    return click.option("--file", "files", metavar="PATH", type=click.Path(path_type=Path), multiple=True, help=words)


def plugin_option(words: str = PLUGIN) -> Option:
    return click.option("--plugin", metavar="DIR", type=DIRECTORY, help=words)

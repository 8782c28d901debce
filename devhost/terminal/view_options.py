"""How much a command shows: --no-color, --traceback and --verbose, as one value."""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import click

traceback_option = click.option("--traceback", is_flag=True, help="Show the tracebacks of the plugins' errors.")


@dataclass(frozen=True)
class ViewOptions:
    color: bool = True
    traceback: bool = False
    verbose: bool = False
    """Whole log entries, not the beginning of each on one line."""


def view_options(command: Callable[..., int]) -> Callable[..., int]:
    """The options as one argument `view_options` of the command."""

    @traceback_option
    @click.option("--verbose", is_flag=True, help="Show log entries whole, not the beginning of each.")
    @click.option("--no-color", is_flag=True, help="Print without colours.")
    @functools.wraps(command)
    def with_view_options(*, traceback: bool, verbose: bool, no_color: bool, **options: object) -> int:
        return command(**options, view_options=ViewOptions(not no_color, traceback, verbose))

    return with_view_options

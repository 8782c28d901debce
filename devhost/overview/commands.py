"""The commands `check` and `list`, which read a plugin's files and start nothing."""

from collections.abc import Callable
from pathlib import Path

import click

from devhost.overview.checked import check_lines
from devhost.overview.inventory import inventory
from devhost.plugin.check import check_plugin
from devhost.plugin.declaration import PluginDeclaration
from devhost.plugin.nearest import nearest_plugin
from devhost.scenario.scenario import examples_of
from devhost.terminal.run_view import open_console
from devhost.text.command_help import examples

WELL, REFUSED = 0, 1


def _plugin_argument(command: Callable[..., int]) -> Callable[..., int]:
    argument = click.argument(
        "plugin", metavar="[PLUGIN]", required=False, type=click.Path(file_okay=False, path_type=Path)
    )
    return argument(click.option("--no-color", is_flag=True, help="Print without colours.")(command))


accept_option = click.option(
    "--accept",
    metavar="RULE:FILE",
    multiple=True,
    help="A finding that is meant, such as secret:README.md; it becomes a notice. Can be repeated.",
)


@click.command(
    epilog=examples(
        "devhost check",
        "devhost check examples/helpdesk",
    )
)
@_plugin_argument
@accept_option
def check(*, plugin: Path | None, accept: tuple[str, ...], no_color: bool) -> int:
    """Check a plugin's declarations by the daemon's rules.

    The plugin is not started. PLUGIN is a folder; by default the nearest plugin in or above the current one.
    """
    checked = check_plugin((plugin or nearest_plugin(Path.cwd())).resolve(), accept)
    console = open_console(stderr=False, color=not no_color)
    for text in check_lines(checked):
        console.print(text, soft_wrap=True)
    return REFUSED if checked.refusals else WELL


@click.command(
    "list",
    epilog=examples(
        "devhost list",
        "devhost list examples/helpdesk",
    ),
)
@_plugin_argument
def list_(*, plugin: Path | None, no_color: bool) -> int:
    """List a plugin's strategies, tools, parameters and examples.

    PLUGIN is a folder; by default the nearest plugin in or above the current one.
    """
    declaration = PluginDeclaration.read(plugin or nearest_plugin(Path.cwd()))
    examples = examples_of(declaration.directory) if declaration.strategies else None
    console = open_console(stderr=False, color=not no_color)
    for text in inventory(declaration, examples):
        console.print(text, soft_wrap=True)
    return WELL

"""The commands `check` and `list`, which read a plugin's files and start nothing."""

from collections.abc import Callable
from pathlib import Path

import click
from rich.text import Text

from devhost.flow.checks.check import seen_in_the_editor, wrong_in_file
from devhost.flow.document import FlowFile
from devhost.overview.checked import check_lines
from devhost.overview.inventory import inventory
from devhost.plugin.check import check_plugin
from devhost.plugin.declaration import PluginDeclaration
from devhost.plugin.nearest import nearest_plugin, nearest_strategy_plugin
from devhost.scenario.scenario import examples_of
from devhost.terminal.run_view import open_console
from devhost.terminal.tables.text import printable
from devhost.text.command_help import examples
from devhost.text.counted import counted
from devhost.text.user_file import real_path

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
        "devhost check examples/workflows/approval.yml",
    )
)
@click.argument("plugin", metavar="[PLUGIN | APP]", required=False, type=click.Path(path_type=Path))
@click.option("--no-color", is_flag=True, help="Print without colours.")
@accept_option
def check(*, plugin: Path | None, accept: tuple[str, ...], no_color: bool) -> int:
    """Check a plugin by the daemon's rules, or an app by the editor's.

    Nothing is started. PLUGIN is a folder; by default the nearest plugin in or above the current one. APP is a file
    that Dify exports; its Agent nodes are checked against the nearest plugin with strategies.
    """
    if plugin is not None and plugin.is_file():
        return _check_app(plugin, color=not no_color)
    checked = check_plugin(real_path(plugin or nearest_plugin(Path.cwd())), accept)
    console = open_console(stderr=False, color=not no_color)
    for text in check_lines(checked):
        console.print(text, soft_wrap=True)
    return REFUSED if checked.refusals else WELL


def _check_app(path: Path, *, color: bool) -> int:
    file = FlowFile.read(path)
    has_agent = any(node.type == "agent" for node in file.nodes.values())
    declared = PluginDeclaration.read(nearest_strategy_plugin(Path.cwd())) if has_agent else None
    found = wrong_in_file(file, declared) or seen_in_the_editor(file, declared)
    console = open_console(stderr=False, color=color)
    for sentence in found:
        console.print(Text(printable(sentence), "bold"), soft_wrap=True)
    if not found:
        console.print(Text(f"{file.kind} with {counted(len(file.nodes), 'node')}: Dify's editor publishes it", "green"))
    return REFUSED if found else WELL


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

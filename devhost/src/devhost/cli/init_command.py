"""`devhost init`: the folder of a new plugin."""

from pathlib import Path
from typing import cast

import click

from devhost.scaffold.plugin_folder import Kind, NewPlugin
from devhost.words import examples

KINDS = ("strategy", "tool")


@click.command(
    epilog=examples(
        "devhost init strategy my_strategy",
        "devhost init tool my_tool --author my-name",
    )
)
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("name")
@click.option(
    "--folder",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the plugin is written; by default a folder with its name.",
)
@click.option("--author", metavar="NAME", default="me", show_default=True, help="Your name in Dify's marketplace.")
def init(*, kind: str, name: str, folder: Path | None, author: str) -> int:
    """Write a new plugin that runs, with a scenario and a test."""
    plugin = NewPlugin(cast("Kind", kind), name, author, folder or Path(name))
    for file in plugin.write():
        click.echo(file)
    click.echo(f"\nREADME.md in {plugin.folder} says how to run it.")
    return 0

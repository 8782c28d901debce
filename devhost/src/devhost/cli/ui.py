"""`devhost ui`: serves the console, which a person opens in a browser."""

import webbrowser
from dataclasses import dataclass
from pathlib import Path

import click

from devhost.errors import ConsoleError
from devhost.options import PLUGIN, command, option
from devhost.plugin.declaration import plugin_in


@dataclass(frozen=True)
class UiOptions:
    """The options of `devhost ui`."""

    runs: Path = option(
        "--runs DIR",
        "The folder of the runs, which are traces; it is made if it is missing.",
        default=Path("devhost-runs"),
        show_default=True,
    )
    plugin: Path | None = option("--plugin DIR", PLUGIN)
    port: int = option("--port NUMBER", "The port; any free one by default.", type=click.IntRange(0, 65535), default=0)
    opens: bool = option("--open/--no-open", "Open the page in the browser; it does by default.", default=True)


@command(UiOptions)
def ui(options: UiOptions) -> int:
    """Serve the console, a local page to run and compare agents.

    Only this machine can reach the console, and only with the token in the address that is printed.

    For example:
      devhost ui
      devhost ui --port 8765 --no-open
    """
    try:
        from devhost.console.app import serve  # noqa: PLC0415
        from devhost.console.folder import RunFolder  # noqa: PLC0415 - a web server, which only this command needs
        from devhost.console.web import Console  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ConsoleError(f"the console needs the package {error.name}: pip install 'dify-devhost[ui]'") from error

    if options.plugin is not None:
        plugin_in(options.plugin)
    folder = RunFolder.opened(options.runs)

    def opened(address: str) -> None:
        where = folder.path.resolve()
        click.echo(f"console  {address}\nruns     {where}\nCtrl-C ends the console and what it started.")
        if options.opens:
            webbrowser.open(address)

    serve(Console(folder, options.plugin), options.port, opened)
    return 0

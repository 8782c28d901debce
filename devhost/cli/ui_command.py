"""`devhost ui`: the console in a browser."""

import contextlib
import webbrowser
from pathlib import Path

import click

from devhost.errors import ConsoleError
from devhost.text.command_help import examples

RUNS = Path("devhost-runs")


@click.command(
    epilog=examples(
        "devhost ui",
        "devhost ui --runs traces --port 8765",
    )
)
@click.option(
    "--runs",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    default=RUNS,
    show_default=True,
    help="The folder of the runs, which are traces; it is made if it is missing.",
)
@click.option(
    "--plugin",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="The strategy plugin; by default the nearest one in or above the current folder.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port; any free one by default.")
@click.option("--open/--no-open", "opens", default=True, help="Open the page in the browser; it does by default.")
def ui(*, runs: Path, plugin: Path | None, port: int, opens: bool) -> int:
    """Serve the console: a local page to run agents, look into the runs and try changes.

    Only this machine can reach it, and only with the token in the address that is printed.
    """
    from devhost.console.runs.folder import RunFolder  # noqa: PLC0415 - a web server, which only this command needs
    from devhost.console.server.serving import serve  # noqa: PLC0415
    from devhost.console.views.console import Console  # noqa: PLC0415

    try:
        runs.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConsoleError(f"--runs {runs} cannot be made: {error.strerror}") from error

    def opened(address: str) -> None:
        click.echo(f"console  {address}\nruns     {runs.resolve()}\nCtrl-C ends the console and what it started.")
        if opens:
            with contextlib.suppress(webbrowser.Error):
                webbrowser.open(address)

    serve(Console(RunFolder(runs), plugin), port, opened)
    return 0

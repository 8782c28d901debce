"""`devhost package`: a plugin as the file that Dify installs."""

import hashlib
import os
from pathlib import Path

import click
from rich.text import Text

from devhost.errors import PackageError
from devhost.overview.checked import check_lines
from devhost.overview.commands import accept_option
from devhost.package.commit import changed_files, folded, unknown_files
from devhost.package.install import MARKETPLACE, try_install
from devhost.package.pack import packed
from devhost.plugin.check import check_plugin
from devhost.plugin.declaration import PluginDeclaration
from devhost.plugin.nearest import nearest_plugin
from devhost.terminal.run_view import open_console
from devhost.terminal.tables.text import printable
from devhost.text.command_help import examples
from devhost.text.counted import counted
from devhost.text.user_file import real_path

WELL, REFUSED = 0, 1
FOLDER = Path("dist")


@click.command(
    epilog=examples(
        "devhost package examples/helpdesk",
        "devhost package examples/helpdesk --no-install -o helpdesk.difypkg",
    )
)
@click.argument("plugin", metavar="[PLUGIN]", required=False, type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help=f"The package; by default {FOLDER}/NAME-VERSION.difypkg in the current folder.",
)
@accept_option
@click.option("--marketplace", is_flag=True, help="Also refuse what only the marketplace refuses.")
@click.option("--install/--no-install", default=True, help="Whether to install and start the package first.")
@click.option("--no-color", is_flag=True, help="Print without colours.")
def package(  # noqa: PLR0913 - its options
    *,
    plugin: Path | None,
    output: Path | None,
    accept: tuple[str, ...],
    marketplace: bool,
    install: bool,
    no_color: bool,
) -> int:
    """Check a plugin, pack it, and try to install the package.

    It is installed in an environment of its own. PLUGIN is a folder; by default the nearest plugin in or above the
    current one. A refused package is not written.
    """
    directory = real_path(plugin or nearest_plugin(Path.cwd()))
    checked = check_plugin(directory, accept)
    console = open_console(stderr=False, color=not no_color)
    for text in check_lines(checked, marketplace=marketplace):
        console.print(text, soft_wrap=True)
    if checked.of("refused", *(("marketplace",) if marketplace else ())):
        return REFUSED
    if strange := unknown_files(checked.contents):
        remedy = f"git add what belongs to it, and name the rest in {checked.contents.ignored_by or '.difyignore'}"
        names = printable(", ".join(folded(strange, checked.contents.paths)))
        console.print(Text(f"not packed: git does not know {names}; {remedy}", "red"), soft_wrap=True)
        return REFUSED
    if changed := changed_files(checked.contents):
        names = printable(", ".join(changed))
        console.print(Text(f"notice: not as in the last commit: {names}", "yellow"), soft_wrap=True)
    manifest = PluginDeclaration.read(directory).manifest
    target = output or FOLDER / f"{manifest.name}-{manifest.version}.difypkg"
    content = packed(checked.contents)
    if install:
        console.print(Text("installing it into an environment of its own …", "dim"))
        took = try_install(content, MARKETPLACE if marketplace else None)
        seconds = f"installed in {took.installing:.0f} s, answered after {took.starting:.1f} s"
        console.print(Text(seconds, "green"), soft_wrap=True)
    _write(target, content)
    digest = hashlib.sha256(content).hexdigest()
    files = f"{counted(len(checked.contents.paths), 'file')}, {counted(len(content), 'byte')}, sha256 {digest}"
    console.print(Text(f"{target}: {files}"), soft_wrap=True)
    return WELL


def _write(target: Path, content: bytes) -> None:
    """Whole, or not at all."""
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            unfinished.write_bytes(content)
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise PackageError(f"{target} cannot be written: {error.strerror}") from error

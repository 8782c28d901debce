"""Writes, installs and opens a plugin as one file.

`devhost/plugin/check.py` reports beforehand what Dify would refuse.
"""

import hashlib
import io
import shutil
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.text import Text

from devhost.archive import ArchiveKind, opened_archive
from devhost.errors import HostError
from devhost.limits import HostLimits
from devhost.options import DIRECTORY, argument, color_option, command, option
from devhost.overview import accept_option, check_lines
from devhost.plugin.check import check_plugin
from devhost.plugin.contents import MAX_BYTES, MAX_FILES, Contents
from devhost.plugin.declaration import PluginDeclaration, nearest_plugin, plugin_in
from devhost.process.environment import package_environment
from devhost.process.plugin_process import PluginProcess
from devhost.process.session import Watcher
from devhost.terminal.screen import Screen, open_console
from devhost.terminal.tables import printable
from devhost.text import real_path, worded, write_file
from devhost.words import counted


def unknown_files(contents: Contents) -> tuple[str, ...]:
    """Return the files that were never added to git, even if git ignores them.

    The result is empty in a folder without git.
    """
    git = shutil.which("git")
    told = git and subprocess.run([git, "ls-files", "-z"], check=False, capture_output=True, cwd=contents.directory)
    if told:
        known = set(told.stdout.decode(errors="replace").split("\0"))
    else:
        known = set()
    strange = tuple(path for path in contents.paths if path not in known)
    if len(strange) < len(contents.paths):
        return strange
    return ()


def packed(contents: Contents) -> bytes:
    """Return a `.difypkg`, which is a zip file. Folders have no entries, as in packages by Dify's own packager."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as package:
        for path in contents.paths:
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))  # the first time that a zip file can hold
            entry.external_attr = 0o100644 << 16  # for Unix: a file that its owner may write and all may read
            package.writestr(entry, contents.read(path), zipfile.ZIP_DEFLATED, 9)
    return file.getvalue()


@contextmanager
def opened_package(file: Path) -> Iterator[Path]:
    """Yield a temporary folder with the contents of a package.

    It is not named after the file, which may be `...difypkg`.
    """
    with tempfile.TemporaryDirectory(prefix="devhost-package-") as home:
        folder = Path(home) / "package"
        unpack(file, folder)
        yield folder


PACKAGE = ArchiveKind("a package", "Make it again", MAX_BYTES, MAX_FILES)


def unpack(file: Path, folder: Path) -> None:
    """Unpack a package into `folder`, which is created.

    The library writes links as files, and nothing outside of the folder.
    """
    with opened_archive(file, PACKAGE) as package:
        package.extractall(folder)
    plugin_in(folder)


def try_install(package: bytes, limits: HostLimits | None = None, watcher: Watcher | None = None) -> float:
    """Install and start a package, and return the seconds until the plugin answered.

    The watcher receives what the plugin prints, and where its environment is. The environment has only the package's
    dependencies. It is new, unless an environment for the same requirements was kept. The plugin runs as in Dify's
    serverless runtime, which the marketplace's pre-check also uses.
    """
    with tempfile.TemporaryDirectory(prefix="devhost-install-") as home:
        file = Path(home) / "plugin.difypkg"
        plugin = Path(home) / "plugin"
        file.write_bytes(package)
        unpack(file, plugin)
        declared = PluginDeclaration.read(plugin, is_unpacked=True)
        heard = watcher or Watcher()
        python = str(package_environment(declared.directory, partial(heard.printed, declared.manifest.name)))
        began = time.monotonic()
        limits = limits or HostLimits()
        with PluginProcess.start(declared, transport="http", python=python, limits=limits, watcher=heard):
            return time.monotonic() - began


FOLDER = Path("dist")


@dataclass(frozen=True)
class PackageOptions:
    plugin: Path | None = argument("[PLUGIN]", DIRECTORY)
    output: Path | None = option("-o, --output FILE", f"The package; by default {FOLDER}/NAME-VERSION.difypkg.")
    accept: tuple[str, ...] = accept_option()
    marketplace: bool = option("--marketplace", "Also refuse what only the marketplace refuses.")
    install: bool = option("--install/--no-install", "Whether to install and start the package first.", default=True)
    color: bool = color_option()


@command(PackageOptions)
def package(options: PackageOptions) -> int:
    """Check a plugin, pack it, and try to install the package.

    It is installed in an environment of its own. PLUGIN is a folder; by default the nearest plugin in or above the
    current one. A refused package is not written.

    For example:
      devhost package examples/helpdesk
      devhost package examples/helpdesk --no-install -o helpdesk.difypkg
    """
    directory = real_path(options.plugin or nearest_plugin())
    checked = check_plugin(directory, options.accept, marketplace=options.marketplace)
    console = open_console(stderr=False, color=options.color)
    for text in check_lines(checked):
        console.print(text, soft_wrap=True)
    if checked.refusals:
        return 1
    if strange := unknown_files(checked.contents):
        remedy = f"git add what belongs to it, and name the rest in {checked.contents.ignored_by or '.difyignore'}"
        names = printable(", ".join(strange))
        console.print(Text(f"not packed: git does not know {names}; {remedy}", "red"), soft_wrap=True)
        return 1
    manifest = PluginDeclaration.read(directory).manifest
    target = options.output or FOLDER / f"{manifest.name}-{manifest.version}.difypkg"
    content = packed(checked.contents)
    if options.install:
        console.print(Text("trying it in an environment of its own …", "dim"))
        # The marketplace's pre-check has this limit.
        limits = HostLimits(launch_seconds=20) if options.marketplace else None
        seconds = try_install(content, limits, Screen(console))
        console.print(Text(f"it is installed, and answered after {seconds:.1f} s", "green"), soft_wrap=True)
    with worded(lambda why: HostError(f"{target} cannot be written: {why}")):
        target.parent.mkdir(parents=True, exist_ok=True)
        write_file(target, content)
    digest = hashlib.sha256(content).hexdigest()
    files = f"{counted(len(checked.contents.paths), 'file')}, {counted(len(content), 'byte')}, sha256 {digest}"
    console.print(Text(f"{target}: {files}"), soft_wrap=True)
    return 0

"""Whether a package can be installed and started with what it declares, and nothing else.

In: the bytes of a `.difypkg`. Out: how long both took; or a `PluginStartError`. The environment is new and has only
the package's dependencies; the plugin is run as by Dify's serverless runtime, as the marketplace's pre-check does.
"""

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from devhost.errors import PluginStartError
from devhost.limits import HostLimits
from devhost.package.opened import unpack
from devhost.plugin.contents.dependencies import REQUIREMENTS, requirement_lines
from devhost.plugin.contents.files import Contents
from devhost.process.plugin_process import PluginProcess

LAST_LINES = 15
MARKETPLACE = HostLimits(launch_seconds=20)
"""How long the marketplace's pre-check waits."""


@dataclass(frozen=True)
class Installed:
    """Seconds."""

    installing: float
    starting: float


def try_install(package: bytes, limits: HostLimits | None = None) -> Installed:
    with tempfile.TemporaryDirectory(prefix="devhost-install-") as home:
        file, plugin, environment = (Path(home) / name for name in ("plugin.difypkg", "plugin", "environment"))
        file.write_bytes(package)
        unpack(file, plugin)
        requirements = Path(home) / REQUIREMENTS
        requirements.write_text("\n".join(requirement_lines(Contents.of(plugin))), encoding="utf-8")
        begun = time.monotonic()
        python = environment / "bin" / "python"
        _call("an environment cannot be made", [sys.executable, "-m", "venv", str(environment)])
        options = ["--quiet", "--disable-pip-version-check", "--no-input"]
        install = [str(python), "-m", "pip", "install", *options, "-r", str(requirements)]
        _call("its dependencies cannot be installed", install)
        installed = time.monotonic()
        return Installed(installed - begun, serve(plugin, python, limits or HostLimits()))


def serve(plugin: Path, python: Path, limits: HostLimits) -> float:
    """The seconds until it answers; then it is stopped."""
    begun = time.monotonic()
    with PluginProcess.start(plugin, transport="http", python=str(python), limits=limits):
        return time.monotonic() - begun


def _call(failure: str, command: list[str]) -> None:
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        words = "\n".join(done.stdout.strip().splitlines()[-LAST_LINES:])
        raise PluginStartError(f"the package cannot be installed: {failure}\n{words}")

"""The Python that runs a plugin: that of its own .venv, which is made if it has none, or else devhost's."""

import shlex
import shutil
import sys
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Unpack

from devhost.errors import PluginStartError
from devhost.plugin.declaration import PluginDeclaration
from devhost.plugin.dependencies import PYPROJECT, REQUIREMENTS, listed, missing, requirements_file
from devhost.process.command import why_it_failed
from devhost.process.plugin_process import PluginProcess, StartOptions
from devhost.process.program import inherited_environment
from devhost.process.session import Stop, Watcher
from devhost.text import read_file

ENVIRONMENT = ".venv"
_ONE_AT_A_TIME = threading.Lock()
"""A plugin that is given twice, such as for its tools and its models, has one environment."""

OF_REQUIREMENTS = "python -m venv .venv && .venv/bin/pip install -r requirements.txt"
OF_PROJECT = "uv sync"


def own_python(directory: Path) -> Path | None:
    """Absolute, because the plugin is started in its directory; a link is kept, because it names the environment."""
    python = directory.absolute() / ENVIRONMENT / "bin" / "python"
    if python.is_file():
        return python
    return None


def by_hand(directory: Path) -> str:
    """How a person makes it, by what the plugin ships."""
    how = OF_PROJECT if requirements_file(directory) == PYPROJECT else OF_REQUIREMENTS
    return f"cd {shlex.quote(str(directory))} && {how}"


def start_in_own_python(plugin: PluginDeclaration, **options: Unpack[StartOptions]) -> PluginProcess:
    """`PluginProcess.start` in the Python of the plugin's own environment, or else in the one of the options.

    With `installs` an environment is made for a plugin that needs what is not installed beside devhost.
    """
    directory = plugin.directory
    watcher = options.get("watcher", Watcher())
    of_tools = (each for tool in plugin.tools for each in (tool.provider, tool.declared))
    # The SDK loads no code for the provider of strategies.
    for part in (*(strategy for _, strategy in plugin.strategies.values()), *of_tools):
        match part.extra:
            case {"python": {"source": str(path)}} if not (directory / path).is_file():
                raise PluginStartError(f"{directory} did not start: {path} does not exist: the SDK cannot load it")

    def told(sentence: str) -> None:
        watcher.printed(plugin.manifest.name, sentence)

    own = own_python(directory)
    if own is None and options.get("python", sys.executable) == sys.executable and (missing := _missing(directory)):
        if options.get("installs"):
            told(f"needs {missing}: making {directory / ENVIRONMENT} with {'uv' if shutil.which('uv') else 'pip'} …")
            began = time.monotonic()
            try:
                own = make_environment(directory, options.get("stop"))
            except PluginStartError as error:
                also = f"To make it by hand: {by_hand(directory)}\nTo run the plugin without it: --no-install"
                raise PluginStartError(f"{error}\n{also}") from error
            told(f"made {directory / ENVIRONMENT} in {time.monotonic() - began:.1f} s")
        else:
            told(f"runs in devhost's Python, which lacks {missing}. To make its own .venv: {by_hand(directory)}")
    if own is not None:
        options["python"] = str(own)
    try:
        return PluginProcess.start(plugin, **options)
    except PluginStartError as error:
        if "ModuleNotFoundError" in str(error):
            where = "devhost's Python" if own is None else "its own .venv"
            raise PluginStartError(
                f"{error}\nIt ran in {where}. To install what it needs: {by_hand(directory)}"
            ) from error
        raise


def _missing(directory: Path) -> str:
    try:
        return ", ".join(missing(directory))
    except (OSError, ValueError) as error:
        return f"what its list of packages says, which cannot be read: {error}"


def make_environment(directory: Path, stop: Stop | None = None) -> Path:
    """Its Python. A failure leaves nothing behind."""
    environment = directory.absolute() / ENVIRONMENT
    with _ONE_AT_A_TIME:
        if (own := own_python(directory)) is not None:
            return own
        if environment.exists():
            raise PluginStartError(f"{environment} has no Python: remove it, or make it: {by_hand(directory)}")
        try:
            environment.mkdir()
            (environment / ".gitignore").write_text("*\n", encoding="utf-8")
            for command in commands(directory, shutil.which("uv")):
                _install(command, directory, stop)
        except BaseException as error:
            shutil.rmtree(environment, ignore_errors=True)
            if isinstance(error, OSError | ValueError):
                raise PluginStartError(f"{environment} cannot be made: {error}") from error
            raise
        return environment / "bin" / "python"


def commands(directory: Path, uv: str | None) -> Iterator[list[str]]:
    """They are run in the plugin's folder, one after the other. OSError or ValueError for a list that is not valid."""
    python = f"{ENVIRONMENT}/bin/python"
    lock = directory / "uv.lock"
    if uv is None:
        yield [sys.executable, "-m", "venv", ENVIRONMENT]
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    else:
        yield [uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, ENVIRONMENT]
        install = [uv, "pip", "install", "--quiet", "--python", python]
    if uv is not None and lock.is_file():
        yield [uv, "sync", "--quiet", "--frozen", "--no-dev", "--no-install-project"]
        return
    if lock.is_file():
        pins = directory / ENVIRONMENT / "pins.txt"
        pins.write_text(_pins(lock), encoding="utf-8")
        install += ["-c", f"{ENVIRONMENT}/{pins.name}"]
    if requirements_file(directory) == REQUIREMENTS:
        yield [*install, "-r", REQUIREMENTS]
    elif lines := listed(directory):
        yield [*install, *(line.text for line in lines)]


def _pins(lock: Path) -> str:
    """The versions that uv has chosen, for pip; without a package that has several, by platform."""
    listed = tomllib.loads(read_file(lock).decode()).get("package", ())
    times = Counter(package["name"] for package in listed)
    pinned = [each for each in listed if "registry" in each.get("source", ()) and times[each["name"]] == 1]
    return "".join(f"{package['name']}=={package['version']}\n" for package in pinned)


def _install(command: list[str], directory: Path, stop: Stop | None) -> None:
    environment = str(directory.absolute() / ENVIRONMENT)
    variables = {**inherited_environment(), "UV_PROJECT_ENVIRONMENT": environment}
    if why := why_it_failed(command, directory, environment=variables, stop=stop):
        raise PluginStartError(f"{environment} cannot be made: {' '.join(command[:4])} … failed\n{why}")

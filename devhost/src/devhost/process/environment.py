"""The Python that runs a plugin: the plugin's own .venv, which is created if necessary, or else devhost's Python.

Because a package is unpacked into a new folder each time, its environment is kept in the user's cache, for the next
package with the same requirements.
"""

import csv
import fcntl
import hashlib
import os
import shlex
import shutil
import sys
import sysconfig
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import IO, Unpack

from devhost.errors import PluginStartError
from devhost.plugin.declaration import PluginDeclaration
from devhost.plugin.dependencies import (
    PYPROJECT,
    REQUIREMENTS,
    are_from_an_index,
    listed,
    missing,
    requirements_file,
)
from devhost.process.command import why_it_failed
from devhost.process.plugin_process import PluginProcess, StartOptions
from devhost.process.program import inherited_environment
from devhost.process.session import Stop, Watcher
from devhost.text import read_file

ENVIRONMENT = ".venv"
_ONE_AT_A_TIME = threading.Lock()
"""A lock for creating environments.

A plugin that is started twice, for its tools and for its models, needs only one environment.
"""

OF_REQUIREMENTS = "python -m venv .venv && .venv/bin/pip install -r requirements.txt"
OF_PROJECT = "uv sync"


def own_python(directory: Path) -> Path | None:
    """Returns the Python of the plugin's own environment; `None` if there is none.

    The path is absolute, because the plugin is started in its directory. A symbolic link is not resolved, because its
    own location determines the environment.
    """
    python = directory.absolute() / ENVIRONMENT / "bin" / "python"
    if python.is_file():
        return python
    return None


def by_hand(directory: Path) -> str:
    """Returns the commands with which a person creates the environment from the plugin's list of requirements."""
    how = OF_REQUIREMENTS
    if requirements_file(directory) == PYPROJECT:
        how = OF_PROJECT
    return f"cd {shlex.quote(str(directory))} && {how}"


def start_in_own_python(plugin: PluginDeclaration, **options: Unpack[StartOptions]) -> PluginProcess:
    """Starts the plugin with the Python of its own environment, or else with the one of the options.

    With `installs` an environment is created for a plugin that needs packages which devhost's Python lacks.
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
            own = _made_for(plugin, missing, told, options.get("stop"))
        else:
            told(f"runs in devhost's Python, which lacks {missing}. To make its own .venv: {by_hand(directory)}")
    if own is not None:
        options["python"] = str(own)
    try:
        return PluginProcess.start(plugin, **options)
    except PluginStartError as error:
        if "ModuleNotFoundError" in str(error):
            where = "its own .venv"
            if own is None:
                where = "devhost's Python"
            raise PluginStartError(
                f"{error}\nIt ran in {where}. To install what it needs: {by_hand(directory)}"
            ) from error
        raise


def _made_for(plugin: PluginDeclaration, missing: str, told: Callable[[str], None], stop: Stop | None) -> Path:
    """Creates the plugin's environment and returns its Python.

    Calls `told` with the missing packages, the place of the environment and the time it took.
    """
    directory = plugin.directory
    installer = "pip"
    if shutil.which("uv"):
        installer = "uv"
    remedies = ["To run the plugin without it: --no-install"]
    try:
        if plugin.is_unpacked:
            told(f"needs {missing}: looking for an environment that was made for it, or making one with {installer} …")
            own = package_environment(directory, told, stop)
        else:
            remedies.insert(0, f"To make it by hand: {by_hand(directory)}")
            told(f"needs {missing}: making {directory / ENVIRONMENT} with {installer} …")
            began = time.monotonic()
            own = make_environment(directory, stop)
            told(f"made {directory / ENVIRONMENT} in {time.monotonic() - began:.1f} s")
    except PluginStartError as error:
        raise PluginStartError("\n".join((str(error), *remedies))) from error
    return own


def _missing(directory: Path) -> str:
    try:
        return ", ".join(missing(directory))
    except (OSError, ValueError) as error:
        return f"the packages in its list, which cannot be read: {error}"


def make_environment(directory: Path, stop: Stop | None = None) -> Path:
    """Creates the plugin's own environment and returns its Python. Removes the environment if this fails."""
    environment = directory.absolute() / ENVIRONMENT
    with _ONE_AT_A_TIME:
        if (own := own_python(directory)) is not None:
            return own
        if environment.exists():
            raise PluginStartError(f"{environment} has no Python: remove it, or make it: {by_hand(directory)}")
        _make(environment, directory, stop)
        return environment / "bin" / "python"


def _make(environment: Path, directory: Path, stop: Stop | None) -> None:
    """Installs the plugin's requirements in a new environment. Removes the environment if this fails."""
    try:
        environment.mkdir()
        (environment / ".gitignore").write_text("*\n", encoding="utf-8")
        for command in commands(directory, shutil.which("uv"), environment):
            _install(command, directory, environment, stop)
    except BaseException as error:
        shutil.rmtree(environment, ignore_errors=True)
        if isinstance(error, OSError | ValueError):
            raise PluginStartError(f"{environment} cannot be made: {error}") from error
        raise


def commands(directory: Path, uv: str | None, environment: Path = Path(ENVIRONMENT)) -> Iterator[list[str]]:
    """Yields the commands that create the environment, to be run in the plugin's folder one after the other.

    Raises `OSError` or `ValueError` for an invalid list of requirements.
    """
    python = str(environment / "bin" / "python")
    lock = directory / "uv.lock"
    if uv is None:
        yield [sys.executable, "-m", "venv", str(environment)]
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    else:
        yield [uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, str(environment)]
        install = [uv, "pip", "install", "--quiet", "--python", python]
    if uv is not None and lock.is_file():
        yield [uv, "sync", "--quiet", "--frozen", "--no-dev", "--no-install-project"]
        return
    if lock.is_file():
        pins = environment / "pins.txt"
        (directory / pins).write_text(_pins(lock), encoding="utf-8")
        install += ["-c", str(pins)]
    if requirements_file(directory) == REQUIREMENTS:
        yield [*install, "-r", REQUIREMENTS]
    elif lines := listed(directory):
        yield [*install, *(line.text for line in lines)]


def _pins(lock: Path) -> str:
    """Returns the versions of a uv lock file as constraints for pip.

    Packages with several versions, which depend on the platform, are omitted.
    """
    listed = tomllib.loads(read_file(lock).decode()).get("package", ())
    times = Counter(package["name"] for package in listed)
    pinned = [each for each in listed if "registry" in each.get("source", ()) and times[each["name"]] == 1]
    return "".join(f"{package['name']}=={package['version']}\n" for package in pinned)


def _install(command: list[str], directory: Path, environment: Path, stop: Stop | None) -> None:
    variables = {**inherited_environment(), "UV_PROJECT_ENVIRONMENT": str(environment)}
    if why := why_it_failed(command, directory, environment=variables, stop=stop):
        raise PluginStartError(f"{environment} cannot be made: {' '.join(command[:4])} … failed\n{why}")


# The environments of packages are kept in the user's cache, one for each set of requirements and each Python.

WHOLE = "devhost-packages.txt"
"""The list of installed packages, which is written last, so that an environment without this file is unfinished."""
KEPT_SECONDS = 30 * 24 * 3600
"""Seconds after which an unused environment is removed when another one is created."""


def environments() -> Path:
    """Returns the folder of the kept environments. $XDG_CACHE_HOME must be absolute, according to its specification."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not cache.is_absolute():
        cache = Path.home() / ".cache"
    return cache / "devhost" / "environments"


def package_environment(directory: Path, told: Callable[[str], None], stop: Stop | None = None) -> Path:
    """Returns the Python of an environment for an unpacked package: a kept environment that fits, or a new one."""
    began = time.monotonic()
    kept = _kept_for(directory)
    if kept is None:
        python = make_environment(directory, stop)
        told(f"made an environment in {time.monotonic() - began:.1f} s; it is removed with the unpacked package")
        return python
    with _alone(kept, told, stop):
        if _is_whole(kept):
            told(f"uses {kept}, which was made for the same requirements")
        else:
            shutil.rmtree(kept, ignore_errors=True)
            _make(kept, directory, stop)
            (kept / WHOLE).write_text("".join(_packages(kept)), encoding="utf-8")
            told(f"made {kept} in {time.monotonic() - began:.1f} s")
            _remove_unused(kept.parent)
        os.utime(kept / WHOLE)
    return kept / "bin" / "python"


def _kept_for(directory: Path) -> Path | None:
    """Returns the folder for the environment of these requirements, which may not exist yet.

    Returns `None` if the requirements name paths or addresses, whose content may change, or if the cache is not
    writable.
    """
    python = (sys.version, sysconfig.get_platform(), sys.base_prefix)
    digest = hashlib.sha256(repr(python).encode())
    try:
        if not are_from_an_index(directory):
            return None
        files = (*directory.rglob("*.txt"), directory / PYPROJECT, directory / "uv.lock")
        for file in sorted(file for file in files if file.is_file()):
            digest.update(repr((file.relative_to(directory).as_posix(), read_file(file))).encode())
        environments().mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError):
        return None
    return environments() / digest.hexdigest()[:32]


@contextmanager
def _alone(kept: Path, told: Callable[[str], None], stop: Stop | None) -> Iterator[None]:
    """Waits until no other devhost creates or checks this environment. The lock of a process ends with the process."""
    with Path(f"{kept}.lock").open("w", encoding="utf-8") as lock:
        if not _is_taken(lock):
            told(f"waits for another devhost, which makes {kept}")
            while not _is_taken(lock):
                if stop is not None and stop.requested:
                    raise PluginStartError(f"stopped while another devhost made {kept}")
                time.sleep(0.1)
        yield


def _is_taken(lock: IO[str]) -> bool:
    """Tries to acquire the lock and returns whether it did."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_whole(kept: Path) -> bool:
    """Returns whether the environment still has its Python and every installed file in its original size."""
    if not (kept / "bin" / "python").is_file() or not (kept / WHOLE).is_file():
        return False
    if read_file(kept / WHOLE).decode() != "".join(_packages(kept)):
        return False
    return all(_has_its_size(file, size) for each in _installed(kept) for file, size in _files(each))


def _installed(kept: Path) -> list[Distribution]:
    return list(distributions(path=[str(folder) for folder in kept.glob("lib/python*/site-packages")]))


def _packages(kept: Path) -> list[str]:
    """Returns one line for each installed package."""
    return sorted(f"{each.name}=={each.version}\n" for each in _installed(kept))


def _files(package: Distribution) -> Iterator[tuple[Path, int]]:
    """Yields the files in the package's RECORD that have a size. `Distribution.files` would omit missing files."""
    for name, _, size in csv.reader((package.read_text("RECORD") or "").splitlines()):
        if size:
            yield Path(str(package.locate_file(name))), int(size)


def _has_its_size(file: Path, size: int) -> bool:
    try:
        return file.stat().st_size == size
    except OSError:
        return False


def _remove_unused(folder: Path) -> None:
    """Removes environments that were not used for `KEPT_SECONDS`, unless another devhost is checking them."""
    for stamp in folder.glob(f"*/{WHOLE}"):
        with suppress(FileNotFoundError), Path(f"{stamp.parent}.lock").open("w", encoding="utf-8") as lock:
            if time.time() - stamp.stat().st_mtime > KEPT_SECONDS and _is_taken(lock):
                shutil.rmtree(stamp.parent, ignore_errors=True)

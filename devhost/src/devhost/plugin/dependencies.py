"""The packages that a plugin needs: which file names them, and which of them are installed.

The daemon installs from pyproject.toml if the plugin has one, else from requirements.txt.
"""

import contextlib
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING

from devhost.text import read_file

if TYPE_CHECKING:
    from packaging.requirements import Requirement

REQUIREMENTS, PYPROJECT = "requirements.txt", "pyproject.toml"


def requirement_lines(file: str, text: str) -> Iterator[tuple[str, str]]:
    """Each requirement with its place, without comments and hashes."""
    if file == PYPROJECT:
        match tomllib.loads(text):
            case {"project": {"dependencies": list(listed)}}:
                yield from ((f"project.dependencies[{number}]", str(line)) for number, line in enumerate(listed))
        return
    for number, line in enumerate(text.replace("\\\n", " ").splitlines(), start=1):
        requirement = line.partition(" #")[0].partition(" --hash")[0].strip()
        if requirement and not requirement.startswith("#"):
            yield f"line {number}", requirement


def requirements_file(directory: Path) -> str:
    """Its name; empty for a plugin without one. A pyproject.toml that only holds settings of tools does not count."""
    try:
        if "project" in tomllib.loads(read_file(directory / PYPROJECT).decode()):
            return PYPROJECT
    except FileNotFoundError:  # then requirements.txt counts, as for the daemon
        pass
    except (OSError, ValueError):  # uv will say what is wrong with it
        return PYPROJECT
    return REQUIREMENTS if (directory / REQUIREMENTS).is_file() else ""


def requirements(directory: Path) -> list[str]:
    """As they are written; OSError or ValueError for a file that cannot be read."""
    file = requirements_file(directory)
    return [line for _, line in requirement_lines(file, read_file(directory / file).decode())] if file else []


def missing(directory: Path) -> Iterator[str]:
    """What of it is not installed beside devhost, as parts of a sentence; what cannot be looked up counts as missing.

    OSError or ValueError as above.
    """
    for line in requirements(directory):
        name, _, version = line.partition("==")
        with contextlib.suppress(PackageNotFoundError):
            if name and version and distribution(name).version == version:
                continue
        from packaging.requirements import InvalidRequirement, Requirement  # noqa: PLC0415 - slow, and seldom needed

        try:
            yield from _missing(Requirement(line))
        except InvalidRequirement:
            if not line.startswith("--"):  # an option of pip's, such as --index-url
                yield line


def _missing(requirement: "Requirement") -> Iterator[str]:
    if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
        return
    try:
        installed = distribution(requirement.name)
    except PackageNotFoundError:
        yield str(requirement)
        return
    if not requirement.specifier.contains(installed.version, prereleases=True):
        yield f"{requirement} ({installed.version} is installed)"
    for extra in requirement.extras:
        for each in map(type(requirement), installed.requires or ()):
            if each.marker is not None and each.marker.evaluate({"extra": extra}):
                each.marker = None
                yield from _missing(each)

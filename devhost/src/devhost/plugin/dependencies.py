"""The packages that a plugin needs: which file names them, what is wrong with it, and which of them are installed.

The daemon installs from pyproject.toml if the plugin has one, else from requirements.txt.
"""

import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from devhost.plugin.problems import Problem
from devhost.text import read_file

if TYPE_CHECKING:
    from devhost.plugin.contents import Contents

REQUIREMENTS, PYPROJECT = "requirements.txt", "pyproject.toml"
SDK = "dify-plugin"
OLDEST_SDK = Version("0.9.0")
"""That the marketplace takes."""


# What is wrong with them, for `devhost check`.


def dependency_problems(contents: "Contents") -> Iterator[Problem]:
    file = PYPROJECT if PYPROJECT in contents else REQUIREMENTS
    if file not in contents:
        yield Problem("dependency", file, "", f"it {contents.absent(file)}: Dify cannot install the plugin")
        return
    try:
        lines = list(_lines(file, contents.text(file)))
    except tomllib.TOMLDecodeError as error:
        yield Problem("dependency", file, "", f"not valid TOML: {error}")
        return
    sdk: Requirement | None = None
    for key, line in lines:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            requirement = None
        if requirement is None or requirement.url or not requirement.specifier:
            sentence = f"{line!r} is not a name with a version from the registry, such as httpx==0.28.1"
            yield Problem("dependency", file, key, sentence)
        elif canonicalize_name(requirement.name) == SDK:
            sdk = requirement
    if sdk is None:
        yield Problem("dependency", file, "", f"{SDK} is missing: without the SDK the plugin does not start")
    elif all(Version(each.version.removesuffix(".*")) < OLDEST_SDK for each in sdk.specifier):
        sentence = f"{sdk} is older than {OLDEST_SDK}, the oldest SDK that the marketplace takes"
        yield Problem("dependency", file, "", sentence, level="marketplace")


def _lines(file: str, text: str) -> Iterator[tuple[str, str]]:
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


# Which of them devhost's own environment has.


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
    return [line for _, line in _lines(file, read_file(directory / file).decode())] if file else []


def missing(directory: Path) -> list[str]:
    """What of it is not installed beside devhost, as parts of a sentence; what cannot be looked up counts as missing.

    OSError or ValueError as above.
    """
    found: list[str] = []
    for line in requirements(directory):
        try:
            found += _missing(Requirement(line))
        except InvalidRequirement:
            if not line.startswith("--"):  # an option of pip's, such as --index-url
                found.append(line)
    return found


def _missing(requirement: Requirement) -> Iterator[str]:
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
        for each in map(Requirement, installed.requires or ()):
            if each.marker is not None and each.marker.evaluate({"extra": extra}):
                each.marker = None
                yield from _missing(each)

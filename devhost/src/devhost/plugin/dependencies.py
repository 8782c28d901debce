"""The packages that a plugin needs: the file that lists them, and whether they are installed.

The daemon installs from pyproject.toml if the plugin has one, else from requirements.txt.
"""

import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from devhost.text import read_file

if TYPE_CHECKING:
    from packaging.requirements import Requirement
    from packaging.utils import NormalizedName

REQUIREMENTS = "requirements.txt"
PYPROJECT = "pyproject.toml"


@dataclass(frozen=True)
class RequirementLine:
    """One line of a requirements file. Lines with options of pip, such as an index, are not included."""

    place: str
    text: str
    requirement: "Requirement | None" = None
    """The requirement; `None` for a path, an address without a name, or an invalid line."""
    fault: str = ""
    """The reason why neither pip nor uv can parse the line; empty for a valid line."""


def requirement_lines(directory: Path, file: str) -> Iterator[RequirementLine]:
    """Yields the lines of a file and of the files that it includes.

    Raises `OSError` or `ValueError` if one of the files cannot be read.
    """
    if file == PYPROJECT:
        match tomllib.loads(read_file(directory / file).decode("utf-8-sig")):
            case {"project": {"dependencies": list(listed)}}:
                for number, text in enumerate(listed):
                    yield _line_of_project(f"project.dependencies[{number}]", str(text))
        return
    from pip_requirements_parser import RequirementsFile  # noqa: PLC0415 - slow and rarely needed

    path = str(directory / file)
    read = RequirementsFile.from_file(path, include_nested=True)
    found: list[tuple[Any, Any, str]] = [(each, None, each.error_message) for each in read.invalid_lines]
    for each in read.requirements:
        requirement: Any = each.req
        if requirement is not None:
            requirement.marker = each.marker
            if each.link is not None and requirement.url is None:  # a path to a wheel with its package's name
                requirement = None
        found.append((each.requirement_line, requirement, ""))
    for line, requirement, fault in sorted(found, key=lambda one: one[0].line_number):
        text = line.line.partition(" --hash")[0].strip()
        place = f"line {line.line_number}"
        if line.filename != path:
            place = f"{Path(line.filename).name} {place}"
        # Two things are not faults: a variable, because uv substitutes it, and a path whose file name is not yet a
        # valid wheel name.
        is_judged = fault and "${" not in text and not text.startswith((".", "/"))
        yield RequirementLine(place, text, requirement, fault.partition("\n")[0] if is_judged else "")


def _line_of_project(place: str, text: str) -> RequirementLine:
    from packaging.requirements import InvalidRequirement, Requirement  # noqa: PLC0415 - as above

    try:
        return RequirementLine(place, text, Requirement(text))
    except InvalidRequirement as error:
        return RequirementLine(place, text, fault=str(error).partition("\n")[0])


def requirements_file(directory: Path) -> str:
    """Returns the name of the file that lists the requirements; empty if the plugin has none.

    A pyproject.toml that contains only settings of tools does not count.
    """
    try:
        if "project" in tomllib.loads(read_file(directory / PYPROJECT).decode()):
            return PYPROJECT
    except FileNotFoundError:  # requirements.txt is used instead, as by the daemon
        pass
    except (OSError, ValueError):  # uv will report the error
        return PYPROJECT
    if (directory / REQUIREMENTS).is_file():
        return REQUIREMENTS
    return ""


def listed(directory: Path) -> list[RequirementLine]:
    """Returns the lines of the plugin's requirements. Raises `OSError` or `ValueError` if a file cannot be read."""
    file = requirements_file(directory)
    if not file:
        return []
    return list(requirement_lines(directory, file))


def are_from_an_index(directory: Path) -> bool:
    """Returns whether all requirements are names with versions, without paths or addresses, whose content may change.

    Raises `OSError` or `ValueError` if a file cannot be read.
    """
    if any(line.requirement is None or line.requirement.url is not None for line in listed(directory)):
        return False
    try:
        project = tomllib.loads(read_file(directory / PYPROJECT).decode("utf-8-sig"))
    except FileNotFoundError:
        return True
    match project:
        case {"tool": {"uv": {"sources": dict(sources)}}}:
            return not sources
        case _:
            return True


def missing(directory: Path) -> Iterator[str]:
    """Yields the requirements that devhost's own environment does not have, as parts of a sentence.

    A requirement that cannot be looked up counts as missing. Raises `OSError` or `ValueError` if a file cannot be read.
    """
    for line in listed(directory):
        if line.requirement is None:
            yield line.text
        else:
            yield from _missing(line.requirement)


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


# The modules of the plugin's own environment, according to the metadata of its packages.


def modules_of_environment(directory: Path) -> Mapping[str, bool]:
    """Returns each top-level module of the plugin's own .venv and whether a requirement provides it.

    The result is empty for a plugin without its own .venv. Raises `OSError` or `ValueError` for unreadable
    requirements.
    """
    folders = [str(folder) for folder in directory.glob(".venv/lib/python*/site-packages")]
    if not folders:
        return {}
    from packaging.utils import canonicalize_name  # noqa: PLC0415 - slow and rarely needed

    installed = {canonicalize_name(each.name): each for each in distributions(path=folders)}
    lines = listed(directory)
    required = [line.requirement for line in lines if line.requirement is not None]
    brought: Collection[str] = installed
    if len(required) == len(lines):  # a path or an address may provide any package
        brought = _brought(required, installed)
    modules: dict[str, bool] = {}
    for name, package in installed.items():
        for module in _modules(package):
            modules[module] = modules.get(module, False) or name in brought
    return modules


def _brought(required: "list[Requirement]", installed: "Mapping[NormalizedName, Distribution]") -> set[str]:
    """Returns the packages that the requirements install, directly or through other packages."""
    from packaging.requirements import Requirement  # noqa: PLC0415 - as above
    from packaging.utils import canonicalize_name  # noqa: PLC0415

    waiting = [(each, "") for each in required]
    seen = set[tuple[str, str]]()
    while waiting:
        requirement, extra = waiting.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        package = installed.get(name)
        for wanted in ("", *requirement.extras):
            if package is not None and (name, wanted) not in seen:
                seen.add((name, wanted))
                waiting += [(Requirement(each), wanted) for each in package.requires or ()]
    return {name for name, _ in seen}


def _modules(package: Distribution) -> set[str]:
    listed_files = package.files or ()
    names = {
        PurePath(file).parts[0].partition(".")[0] for file in listed_files if file.suffix in {".py", ".so", ".pyd"}
    }
    return {name for name in names if name.isidentifier()}

"""What a package needs to be installed.

In: `Contents`. Out: problems of the rule `dependency`. The daemon installs from pyproject.toml if the package has one,
else from requirements.txt.
"""

import tomllib
from collections.abc import Iterator

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from devhost.plugin.contents.files import Contents
from devhost.plugin.rules.listed import Problem

REQUIREMENTS, PYPROJECT = "requirements.txt", "pyproject.toml"
SDK = "dify-plugin"
OLDEST_SDK = Version("0.9.0")
"""That the marketplace takes."""


def dependency_problems(contents: Contents) -> Iterator[Problem]:
    file = PYPROJECT if PYPROJECT in contents else REQUIREMENTS
    if file not in contents:
        yield Problem("dependency", file, "", f"it {contents.absent(file)}: Dify cannot install the plugin")
        return
    try:
        lines = list(_lines(contents, file))
    except tomllib.TOMLDecodeError as error:
        yield Problem("dependency", file, "", f"not valid TOML: {error}")
        return
    sdk: Requirement | None = None
    for key, line in lines:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            sentence = f"{line!r} is not a name with a version, such as httpx==0.28.1"
            yield Problem("dependency", file, key, sentence)
            continue
        yield from _requirement_problems(file, key, requirement)
        if canonicalize_name(requirement.name) == SDK:
            sdk = requirement
    if sdk is None:
        yield Problem("dependency", file, "", f"{SDK} is missing: without the SDK the plugin does not start")
    elif not sdk.specifier.contains(OLDEST_SDK) and not _is_newer(sdk):
        sentence = f"{sdk} is older than {OLDEST_SDK}, the oldest SDK that the marketplace takes"
        yield Problem("dependency", file, "", sentence, level="marketplace")


def _requirement_problems(file: str, key: str, requirement: Requirement) -> Iterator[Problem]:
    if requirement.url:
        yield Problem("dependency", file, key, f"{requirement.name} comes from a URL: give a version from the registry")
    elif not requirement.specifier:
        yield Problem("dependency", file, key, f"{requirement.name} has no version, such as {requirement.name}==1.0")
    elif all(each.operator in {">", ">=", "!="} for each in requirement.specifier):
        sentence = f"{requirement} also allows versions of the future: add an upper bound, or pin it"
        yield Problem("dependency", file, key, sentence, level="notice")


def _is_newer(sdk: Requirement) -> bool:
    """Pinned to, or bounded by, versions above the oldest that counts."""
    return any(
        each.operator in {"==", ">=", "~=", ">"} and Version(each.version.removesuffix(".*")) > OLDEST_SDK
        for each in sdk.specifier
    )


def requirement_lines(contents: Contents) -> list[str]:
    """For pip: the file from which the daemon installs, without comments and hashes."""
    return [line for _, line in _lines(contents, PYPROJECT if PYPROJECT in contents else REQUIREMENTS)]


def _lines(contents: Contents, file: str) -> Iterator[tuple[str, str]]:
    """Each requirement with its place, without comments and hashes."""
    if file == PYPROJECT:
        for number, line in enumerate(_of_pyproject(contents)):
            yield f"project.dependencies[{number}]", line
        return
    whole = contents.text(file).replace("\\\n", " ")
    for number, line in enumerate(whole.splitlines(), start=1):
        requirement = line.partition(" #")[0].partition(" --hash")[0].strip()
        if requirement and not requirement.startswith("#"):
            yield f"line {number}", requirement


def _of_pyproject(contents: Contents) -> list[str]:
    match tomllib.loads(contents.text(PYPROJECT)):
        case {"project": {"dependencies": list(listed)}}:
            return [str(line) for line in listed]
        case _:
            return []

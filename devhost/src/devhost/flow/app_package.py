"""Reads app packages, the `.ifpkg` files to which Dify has exported apps since 1.18.0.

A package is a ZIP file with all files at its root: `manifest.yaml`, the app as a DSL file, and the resources of nodes
of Dify's new agent (skills, files, icons). docs/flows.md names the source of these facts.
"""

import hashlib
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from devhost.archive import ArchiveKind, opened_archive
from devhost.errors import FlowFileError
from devhost.text import FAST, MOST_BYTES, load_yaml_text, worded
from devhost.words import counted

SUFFIX = ".ifpkg"
MANIFEST = "manifest.yaml"
AGENT_FORMAT = "dify.roster-agent"
APP_PACKAGE = ArchiveKind("an app package", "Export the app again, or as YAML", 50 * 1024 * 1024, 5_000, FlowFileError)
IS_YAML = "Dify exports the app as YAML, too: choose YAML when you export it"


class _Entry(BaseModel):
    """One file of the package, as the manifest lists it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    path: str
    size: int
    sha256: str


class _Resources(BaseModel):
    """The files in the package that belong to one agent node."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    skills: tuple[_Entry, ...] = ()
    files: tuple[_Entry, ...] = ()


class _Manifest(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    format: Literal["dify.app"]
    format_version: Literal[1]
    apps: tuple[_Entry, ...] = Field(min_length=1, max_length=1)
    agent_resources: dict[str, _Resources] = Field(default_factory=dict)
    icons: tuple[_Entry, ...] = ()

    def entries(self) -> Iterator[_Entry]:
        yield from self.apps
        yield from self.icons
        for resources in self.agent_resources.values():
            yield from resources.skills
            yield from resources.files

    @property
    def unused(self) -> tuple[str, ...]:
        """The contents of the package that devhost does not use, in words."""
        counts = {
            "icon": len(self.icons),
            "skill": sum(len(each.skills) for each in self.agent_resources.values()),
            "file": sum(len(each.files) for each in self.agent_resources.values()),
        }
        return tuple(counted(count, word) for word, count in counts.items() if count)


@dataclass(frozen=True)
class AppPackage:
    """An app's DSL, read from its package."""

    data: dict[str, Any]
    """The parsed DSL file."""
    unused: tuple[str, ...]
    """The contents of the package that only Dify uses, in words: "2 skills", "1 file"."""

    @classmethod
    def read(cls, path: Path) -> "AppPackage":
        """Reads and checks a package. Raises FlowFileError if Dify would not import the package."""
        with opened_archive(path, APP_PACKAGE) as archive:
            members = _members(path, archive)
            manifest = _manifest(path, _yaml(path, MANIFEST, _content(path, archive, members, MANIFEST)))
            listed = {entry.path for entry in manifest.entries()}
            if found := sorted(listed.symmetric_difference(members.keys() - {MANIFEST})):
                raise FlowFileError(
                    f"{path}: {found[0]} is only in the package or only in its {MANIFEST}. Export the app again"
                )
            for entry in manifest.entries():
                _check_content(path, archive, members, entry)
            app = manifest.apps[0]
            content = _content(path, archive, members, app.path)
            data = _yaml(path, app.path, content)
        return cls(data, manifest.unused)


def _members(path: Path, archive: zipfile.ZipFile) -> Mapping[str, zipfile.ZipInfo]:
    members = dict[str, zipfile.ZipInfo]()
    for info in archive.infolist():
        if "/" in info.filename or "\\" in info.filename:
            raise FlowFileError(
                f"{path}: {info.filename!r} is in a folder; all files of an app package are at its root"
            )
        if info.filename in members:
            raise FlowFileError(f"{path} holds {info.filename!r} twice. Export the app again")
        members[info.filename] = info
    return members


def _content(path: Path, archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo], name: str) -> bytes:
    """Returns the content of one YAML file in the package."""
    if name not in members:
        raise FlowFileError(f"{path} has no {name}, so it is not an app package. {IS_YAML}")
    if members[name].file_size > MOST_BYTES:
        raise FlowFileError(f"{path}: {name} has more than {MOST_BYTES // 1024**2} MiB")
    return archive.read(name)


def _check_content(path: Path, archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo], entry: _Entry) -> None:
    digest = hashlib.sha256()
    with archive.open(members[entry.path]) as member:
        while chunk := member.read(1024 * 1024):
            digest.update(chunk)
    if (members[entry.path].file_size, digest.hexdigest()) != (entry.size, entry.sha256):
        raise FlowFileError(
            f"{path}: {entry.path} is not the file that {MANIFEST} describes (size or SHA-256 differ). "
            "Export the app again: Dify does not import a package that was changed"
        )


def _manifest(path: Path, data: dict[str, Any]) -> _Manifest:
    if data.get("format") == AGENT_FORMAT:
        raise FlowFileError(
            f"{path} is an agent of Dify's own ({AGENT_FORMAT}), not an app; devhost plays workflows and chatflows"
        )
    with worded(lambda why: FlowFileError(f"{path}: {MANIFEST} is not one that devhost knows: {why}. {IS_YAML}")):
        return _Manifest.model_validate(data)


def _yaml(path: Path, name: str, content: bytes) -> dict[str, Any]:
    """Parses a YAML file of the package, in which Dify accepts neither aliases nor duplicate keys."""
    data = load_yaml_text(content, path / name)
    for fault in _faults(yaml.compose(content, Loader=FAST), set()):
        raise FlowFileError(f"{path / name}: {fault}; Dify does not accept such YAML in a package")
    return data


def _faults(node: yaml.Node | None, met: set[int]) -> Iterator[str]:
    """Yields a sentence for each piece of YAML that Dify does not accept.

    `met` contains the identities of the nodes so far, because an alias is the same object as its anchor.
    """
    if node is None:
        return
    if id(node) in met:
        yield "an anchor is used again by an alias (*)"
        return
    met.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _faults(item, met)
    if isinstance(node, yaml.MappingNode):
        keys = set[str]()
        for key, value in node.value:
            if str(key.value) in keys:
                yield f"the key {str(key.value)!r} appears twice in one mapping"
            keys.add(str(key.value))
            yield from _faults(value, met)

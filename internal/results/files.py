"""The files of a tool: what goes to the user, and the line that the model reads.

In: addresses, bytes and meta, as they come from the wire. Out: a line, and the file to forward, if there is one. A file
without a name gets one, so that the model can speak of it.
"""

import base64
import binascii
import mimetypes
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from posixpath import splitext
from typing import Any, NamedTuple

import filetype

from internal.host.local_files import FileRefused, is_local_path, read_local_file, sniff_mime_type
from internal.report.files import (
    MAX_ADDRESS_LENGTH,
    MAX_FILE_BYTES,
    MAX_NAME_LENGTH,
    ExternalImage,
    FileBytes,
    HostedFile,
    UserFile,
)

IMAGE_TYPES = frozenset({"image", "image_link"})

# The meta of a tool file that Dify and its web page read; a tool could add anything of any size.
_HOSTED_META = ("tool_file_id", "mime_type", "filename", "extension", "size", "type", "width", "height")
_TOOL_FILE = re.compile(r"/files/tools/[\w-]+(\.\w+)?(\?[^\s]*)?")
_WEB = ("http://", "https://")
_EXTENSION = re.compile(r"\.\w{1,10}")


class Told(NamedTuple):
    """The result of a message about a file."""

    line: str
    file: UserFile | None = None


@dataclass
class FileNames:
    """Names for files that have none; no two of a run are the same."""

    _given: Counter[str] = field(default_factory=Counter)

    def next(self, tool: str, extension: str) -> str:
        """Such as ``chart-1.png``."""
        self._given[tool] += 1
        return f"{tool}-{self._given[tool]}{extension}"


@dataclass(frozen=True)
class FileReader:
    """Reads the files of one tool."""

    tool: str
    names: FileNames

    def is_hosted(self, address: str, meta: Mapping[str, Any]) -> bool:
        """Whether it is a file that Dify keeps."""
        return len(address) <= MAX_ADDRESS_LENGTH and (
            _TOOL_FILE.fullmatch(address) is not None or bool(meta.get("tool_file_id") and _may_be_hosted(address))
        )

    def linked(self, kind: str, address: str, meta: Mapping[str, Any]) -> Told:
        """A file by its address: one of Dify's, a local path, or something on the web."""
        if len(address) > MAX_ADDRESS_LENGTH:
            return Told("file: its address is too long, not handed on")
        if self.is_hosted(address, meta):
            name = self._name(meta, address)
            line = f"file: {name} ({_mime_type(meta) or 'unknown type'}), handed to the user"
            return Told(line, HostedFile(address, {**_hosted_meta(meta), "filename": name}))
        if is_local_path(address):
            return self._local(address)
        if kind in IMAGE_TYPES and address.startswith(_WEB):
            return _external_image(_given_name(meta), address)
        return Told(f"file: {address}")

    def _local(self, path: str) -> Told:
        try:
            file = read_local_file(path)
        except FileRefused as refused:
            return Told(str(refused))
        line = f"file: {file.filename} ({file.mime_type}), handed to the user"
        return Told(line, FileBytes(file.data, file.mime_type, file.filename))

    def blob(self, blob: object, meta: Mapping[str, Any]) -> Told:
        """A file by its bytes, in base64."""
        try:
            data = base64.b64decode(str(blob or ""), validate=True)
        except (binascii.Error, ValueError):
            return Told("file: its bytes could not be read")
        if len(data) > MAX_FILE_BYTES:
            return Told("file: larger than 15 MiB, not handed on")
        mime_type = _mime_type(meta) or sniff_mime_type(data)
        name = self._name({**meta, "mime_type": mime_type})
        return Told(f"file: {name} ({mime_type}), handed to the user", FileBytes(data, mime_type, name))

    def described(self, meta: Mapping[str, Any]) -> Told:
        """A file that is only described: an upload, or one on the web, whose address its description has."""
        described = meta.get("file")
        file = described if isinstance(described, Mapping) else meta
        address = str(file.get("remote_url") or "")
        mime_type = _mime_type(file)
        if not address.startswith(_WEB) or len(address) > MAX_ADDRESS_LENGTH:
            return Told(f"file: {self._name(file)} ({mime_type or 'unknown type'})")
        if file.get("type") == "image" or mime_type.startswith("image/"):
            return _external_image(_given_name(file), address)
        named = f"{self._name(file, address)} ({mime_type or 'unknown type'})"
        return Told(f"file: {named}, {address}")

    def _name(self, meta: Mapping[str, Any], address: str = "") -> str:
        return _given_name(meta) or self.names.next(self.tool, _extension(meta, address))


def _external_image(name: str, address: str) -> Told:
    return Told(f"image: {f'{name}, {address}' if name else address}, shown to the user", ExternalImage(address))


def _may_be_hosted(address: str) -> bool:
    """Whether an address is one under which Dify keeps tool files, or none of this machine's."""
    under_tools = address.startswith("/files/tools/") and ".." not in address and "\0" not in address
    return not address or under_tools or not is_local_path(address)


def _hosted_meta(meta: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a file's meta that is forwarded: numbers, and texts no longer than a name."""
    kept: dict[str, Any] = {}
    for name in _HOSTED_META:
        value = meta.get(name)
        if isinstance(value, str):
            kept[name] = _short_name(value)
        elif isinstance(value, int | float):
            kept[name] = value
    return kept


def _short_name(name: str) -> str:
    """A file's name or type; one that is too long keeps the suffix that says what the file is."""
    if len(name) <= MAX_NAME_LENGTH:
        return name
    suffix = splitext(name)[1][:MAX_NAME_LENGTH]
    return name[: MAX_NAME_LENGTH - len(suffix)] + suffix


def _told(meta: Mapping[str, Any], *names: str) -> str:
    """What a file's meta, or the description of the file in it, says under one of these names."""
    described = meta.get("file")
    for part in (meta, described if isinstance(described, Mapping) else {}):
        for name in names:
            if isinstance(part.get(name), str) and part[name].strip():
                return _short_name(" ".join(part[name].split()))
    return ""


def _given_name(meta: Mapping[str, Any]) -> str:
    return _told(meta, "filename", "name")


def _mime_type(meta: Mapping[str, Any]) -> str:
    return _told(meta, "mime_type")


@cache
def _mime_types() -> mimetypes.MimeTypes:
    """Python's own table, since those of a machine would give one file two names. Made when the first file needs it."""
    types = mimetypes.MimeTypes()
    types.add_type("audio/wav", ".wav")
    types.add_type("text/markdown", ".md")
    return types


def _extension(meta: Mapping[str, Any], address: str) -> str:
    """The suffix of a generated name: that of the address, else that of the type."""
    for suffix in (splitext(address.partition("?")[0])[1], _told(meta, "extension")):
        if _EXTENSION.fullmatch(suffix):
            return suffix
    mime_type = _mime_type(meta).partition(";")[0].lower()
    known = _mime_types().guess_extension(mime_type)
    kind = None if known else filetype.get_type(mime=mime_type)  # type: ignore[no-untyped-call] # without annotations
    return known or (f".{kind.extension}" if kind else "")

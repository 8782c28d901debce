"""The files of a tool: what goes to the user, and the line that the model reads.

In: addresses, bytes and meta, as they come from the wire. Out: a line, and the file to forward, if there is one. The
model is told no name that the user does not see: Dify calls a file that has none by a random one.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from posixpath import splitext
from typing import Any, NamedTuple

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


class Told(NamedTuple):
    """The result of a message about a file."""

    line: str
    file: UserFile | None = None


def is_hosted(address: str, meta: Mapping[str, Any]) -> bool:
    """Whether it is a file that Dify keeps."""
    return len(address) <= MAX_ADDRESS_LENGTH and (
        _TOOL_FILE.fullmatch(address) is not None or bool(meta.get("tool_file_id") and _may_be_hosted(address))
    )


def linked(kind: str, address: str, meta: Mapping[str, Any]) -> Told:
    """A file by its address: one of Dify's, a local path, or something on the web."""
    if len(address) > MAX_ADDRESS_LENGTH:
        return Told("file: its address is too long, not handed on")
    if is_hosted(address, meta):
        name = _hosted_name(meta, address)
        line = f"{_called(name, _mime_type(meta))}, handed to the user"
        return Told(line, HostedFile(address, _hosted_meta(meta) | ({"filename": name} if name else {})))
    if is_local_path(address):
        return _local(address)
    if kind in IMAGE_TYPES and address.startswith(_WEB):
        return _external_image(_given_name(meta), address)
    return Told(f"file: {address}")


def _local(path: str) -> Told:
    try:
        file = read_local_file(path)
    except FileRefused as refused:
        return Told(str(refused))
    line = f"{_called(file.filename, file.mime_type)}, handed to the user"
    return Told(line, FileBytes(file.data, file.mime_type, file.filename))


def blob(blob: object, meta: Mapping[str, Any]) -> Told:
    """A file by its bytes, in base64."""
    try:
        data = base64.b64decode(str(blob or ""), validate=True)
    except (binascii.Error, ValueError):
        return Told("file: its bytes could not be read")
    if len(data) > MAX_FILE_BYTES:
        return Told("file: larger than 15 MiB, not handed on")
    mime_type = _mime_type(meta) or sniff_mime_type(data)
    name = _given_name(meta)
    return Told(f"{_called(name, mime_type)}, handed to the user", FileBytes(data, mime_type, name))


def described(meta: Mapping[str, Any]) -> Told:
    """A file that is only described: an upload, or one on the web, whose address its description has."""
    described = meta.get("file")
    file = described if isinstance(described, Mapping) else meta
    address = str(file.get("remote_url") or "")
    name, mime_type = _given_name(file), _mime_type(file)
    if not address.startswith(_WEB) or len(address) > MAX_ADDRESS_LENGTH:
        return Told(_called(name, mime_type))
    if file.get("type") == "image" or mime_type.startswith("image/"):
        return _external_image(name, address)
    return Told(f"{_called(name, mime_type)}, {address}")


def _called(name: str, mime_type: str) -> str:
    return f"{f'file: {name}' if name else 'file'} ({mime_type or 'unknown type'})"


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


def _hosted_name(meta: Mapping[str, Any], address: str) -> str:
    """Dify adds its type's suffix, which the address has too, to a name without a dot."""
    name = _given_name(meta)
    return name if "." in name or not name else name + splitext(address.partition("?")[0])[1]


def _mime_type(meta: Mapping[str, Any]) -> str:
    return _told(meta, "mime_type")

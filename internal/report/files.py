"""Files that can be forwarded to the user, as values: ``results`` makes them, ``render`` writes them out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MAX_FILE_BYTES = 15 * 1024 * 1024
"""Bytes; the daemon refuses a larger blob: docs/host-facts.md, "Size limits"."""
MAX_ADDRESS_LENGTH = 2_048
"""Characters of an address that is forwarded."""
MAX_NAME_LENGTH = 200
"""Characters of a file's name or type."""


@dataclass(frozen=True)
class HostedFile:
    """A file that Dify has already."""

    address: str
    """Forwarded unchanged: Dify finds the file by it, or by its meta."""
    meta: Mapping[str, Any]
    """What Dify reads of the tool's meta, texts cut to MAX_NAME_LENGTH, with a filename; secrets go when it is sent."""


@dataclass(frozen=True)
class ExternalImage:
    """An image somewhere on the web; Dify fetches it."""

    address: str


@dataclass(frozen=True)
class FileBytes:
    """A file that Dify does not have yet."""

    data: bytes
    mime_type: str
    filename: str


type UserFile = HostedFile | ExternalImage | FileBytes

"""Files on this machine, of which only those under /files are read, and files behind an address."""

import fcntl
import os
import ssl
import stat
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from urllib.parse import unquote, urlsplit

import httpx
from gevent import Timeout
from gevent.socket import getaddrinfo

from internal.text.texts import wellformed

FILES_ROOT = Path("/files")
MAX_LOCAL_FILE_BYTES = 5 * 1024 * 1024
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class FileRefused(Exception):  # noqa: N818 - says what happened
    """Names no path and no reason of the file system's."""

    def __init__(self) -> None:
        super().__init__("file refused: only regular files of at most 5 MiB under /files can be passed on")


@dataclass(frozen=True)
class FileBytes:
    data: bytes
    mime_type: str
    filename: str


def is_local_path(location: str) -> bool:
    """Whether a location means this machine's file system rather than an address."""
    try:
        scheme = urlsplit(location).scheme
    except ValueError:
        return True  # not an address that can be fetched
    return scheme in {"", "file"} or len(scheme) == 1  # a single letter is a drive


def read_local_file(location: str, *, root: Path = FILES_ROOT, limit: int = MAX_LOCAL_FILE_BYTES) -> FileBytes:
    """Read the file that a path or ``file:`` URL names; ``FileRefused`` unless it is a small regular file in root."""
    try:
        path = unquote(urlsplit(location).path) if location.startswith("file:") else location
        resolved = os.path.realpath(path, strict=True)
        allowed = os.path.realpath(root, strict=True)
        if not _lies_under(resolved, allowed):
            raise FileRefused
        descriptor = os.open(resolved, _FLAGS)
        try:
            data = _read_checked(descriptor, allowed, limit)
        finally:
            os.close(descriptor)
    except (OSError, ValueError):
        raise FileRefused from None
    return FileBytes(data, sniff_mime_type(data), wellformed(os.path.basename(resolved)))  # noqa: PTH119 - a string


def _read_checked(descriptor: int, allowed: str, limit: int) -> bytes:
    """Check the descriptor itself, so that a path that changes makes no difference, then read."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_size > limit or not _lies_under(_path_of(descriptor), allowed):
        raise FileRefused
    data = b""
    while len(data) <= limit and (block := os.read(descriptor, limit + 1 - len(data))):
        data += block
    if len(data) > limit:
        raise FileRefused
    return data


def _lies_under(path: str, root: str) -> bool:
    return os.path.commonpath([path, root]) == root and path != root


def _path_of(descriptor: int) -> str:
    """The real path of an open file, from the kernel."""
    if hasattr(fcntl, "F_GETPATH"):  # macOS, for debugging
        return os.fsdecode(fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
    return os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 - a string all the way


def sniff_mime_type(data: bytes) -> str:
    """The type that the bytes show; names and headers do not count."""
    import filetype  # noqa: PLC0415 - few runs have a file, and every start would wait for it

    guessed = filetype.guess_mime(data)  # type: ignore[no-untyped-call] # the library has no annotations
    if guessed:
        return str(guessed)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return "application/octet-stream"
    return "application/octet-stream" if "\0" in text else "text/plain"


# Files of the turn, read from their addresses: of Dify's own file service, or wherever a user's link points. Dify's
# proxy against forged requests is used where the environment has one (docs/host-facts.md, "Files of a turn").

_SECONDS = 10
"""For each step: to connect, and from one piece to the next. The whole has a limit of its caller's."""
_MOST_REDIRECTS = 5
_HEADERS = {"Accept-Encoding": "identity"}
"""A small file can unpack to gigabytes, and the whole process would wait for it."""
_OWN = ("INTERNAL_FILES_URL", "FILES_URL", "CONSOLE_API_URL")
"""Variables of Dify with the beginning of its own files' addresses, which need no proxy."""


class FileUnavailable(Exception):  # noqa: N818 - its text is what the model reads
    """A file of this turn cannot be shown to the model."""


class FileNotDelivered(FileUnavailable):
    """Its server did not deliver it."""


def fetch_file(address: str, size: int, most_bytes: int) -> bytes:
    """The content of at most so many bytes. ``size``: what Dify says of it; 0 if it does not."""
    too_large = FileUnavailable(f"larger than {most_bytes / 2**20:.2f} MiB, not shown")

    def content(response: httpx.Response) -> bytes:
        if response.raise_for_status().headers.get("Content-Encoding", "identity") != "identity":
            raise FileUnavailable("could not be fetched: its server sends it compressed")
        data = bytearray()
        for block in response.iter_raw():
            data += block
            if len(data) > most_bytes:
                raise too_large
        return bytes(data)

    if size > most_bytes:
        raise too_large
    return _read(address, content)


def still_answers(address: str, seconds: float) -> bool:
    """Whether there is a file behind an address; its content is not read."""
    try:
        with Timeout(min(seconds, _SECONDS), FileUnavailable()):
            _read(address, httpx.Response.raise_for_status)
    except FileUnavailable:
        return False
    return True


def _read[T](address: str, read: Callable[[httpx.Response], T]) -> T:
    """Read the answer at an address, behind its redirects."""
    try:
        first = url = httpx.URL(address)
        for _ in range(_MOST_REDIRECTS + 1):
            with httpx.stream(
                "GET", url, headers=_HEADERS, timeout=_SECONDS, proxy=_proxy(url), verify=_trusted()
            ) as response:
                if response.next_request is None:
                    return read(response)
                url = response.next_request.url
            if _is_private(url) and not _is_private(first):
                raise FileUnavailable("could not be fetched: its address leads into a private network")
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, OSError):  # a host that IDNA cannot write is a ValueError
        pass
    raise FileNotDelivered("could not be fetched")


@cache
def _trusted() -> ssl.SSLContext:
    """Reading all certificates takes some 50 ms, in which no other session runs."""
    return httpx.create_ssl_context()


def _proxy(url: httpx.URL) -> str | None:
    """None leaves it to HTTP_PROXY and the like."""
    own = (httpx.URL(os.environ.get(name, "")) for name in _OWN)
    if any(url.host and (url.scheme, url.host, url.port) == (each.scheme, each.host, each.port) for each in own):
        return None
    names = ("SSRF_PROXY_ALL_URL", f"SSRF_PROXY_{url.scheme.upper()}_URL")
    return next((os.environ[name] for name in names if os.environ.get(name)), None)


def _is_private(url: httpx.URL) -> bool:
    """Whether the host has an address of this computer or of a private network."""
    found = {ip_address(entry[4][0]) for entry in getaddrinfo(url.host, None)}
    plain = {(isinstance(each, IPv6Address) and each.ipv4_mapped) or each for each in found}
    return not all(each.is_global for each in plain)

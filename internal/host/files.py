"""Reads local files, only under /files, and files at an address."""

import fcntl
import os
import ssl
import stat
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx
from gevent import Timeout
from gevent.socket import getaddrinfo

from internal.clock import in_turns
from internal.text.texts import wellformed
from prompt import tool_errors

FILES_ROOT = Path("/files")
MAX_LOCAL_FILE_BYTES = 5 * 1024 * 1024
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class FileRefused(Exception):  # noqa: N818 - the name says what happened
    """Raised for a file that is refused. The message contains neither a path nor an error of the file system."""

    def __init__(self) -> None:
        super().__init__(tool_errors.FILE_REFUSED)


@dataclass(frozen=True)
class FileBytes:
    data: bytes
    mime_type: str
    filename: str


def is_local_path(location: str) -> bool:
    """Return whether a location refers to this machine's file system and not to an address."""
    try:
        scheme = urlsplit(location).scheme
    except ValueError:
        return True  # an invalid address cannot be fetched
    return scheme in {"", "file"} or len(scheme) == 1  # a single letter is a drive


def read_local_file(location: str, *, root: Path = FILES_ROOT, limit: int = MAX_LOCAL_FILE_BYTES) -> FileBytes:
    """Read the file that a path or ``file:`` URL names. Raises ``FileRefused`` unless it is a small file in root."""
    try:
        path = location
        if location.startswith("file:"):
            path = unquote(urlsplit(location).path)
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
    """Check and read the open file. The descriptor is checked, so that a later change of the path has no effect."""
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
    """Return the real path of an open file, as the kernel reports it."""
    if hasattr(fcntl, "F_GETPATH"):  # macOS, for debugging
        return os.fsdecode(fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
    return os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 - the path is a string


def sniff_mime_type(data: bytes) -> str:
    """Detect the MIME type from the bytes. Names and headers are ignored."""
    import filetype  # noqa: PLC0415 - few runs have a file, and the import would slow every start

    guessed = filetype.guess_mime(data)  # type: ignore[no-untyped-call] # the library has no annotations
    if guessed:
        return str(guessed)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return "application/octet-stream"
    if "\0" in text:
        return "application/octet-stream"
    return "text/plain"


# Files of the turn are read from their addresses: in Dify's own file service, or wherever a user's link points. Dify's
# SSRF proxy is used if the environment has one (docs/host-facts.md, "Files of a turn").

_SECONDS = 10
"""Maximum seconds to connect, and between two pieces. The caller limits the total time."""
_MOST_REDIRECTS = 5
_MOST_ADDRESSES = 4
"""Maximum number of addresses of one host that are tried. The next one is tried if a connection fails."""
_HEADERS = {"Accept-Encoding": "identity"}
"""Headers that refuse compression, because a small file could unpack to gigabytes and block the whole process."""
_OWN = ("INTERNAL_FILES_URL", "FILES_URL", "CONSOLE_API_URL")
"""Dify's environment variables with the prefixes of its own file addresses, which need no proxy."""


type IPAddress = IPv4Address | IPv6Address


class FileUnavailable(Exception):  # noqa: N818 - the model reads the message
    """Raised if a file of this turn cannot be shown to the model."""


class FileNotDelivered(FileUnavailable):
    """Raised if the server did not deliver the file."""


def _resolved(host: str) -> Sequence[IPAddress]:
    return list(dict.fromkeys(ip_address(entry[4][0]) for entry in getaddrinfo(host, None)))


_TRANSLATED = ip_network("64:ff9b::/96")
"""IPv6 addresses that NAT64 translates, with an IPv4 address in the last 32 bits."""
_LOCALLY_TRANSLATED = ip_network("64:ff9b:1::/48")
_COMPATIBLE = ip_network("::/96")


def is_private(address: IPAddress) -> bool:
    """Return whether an address, or the IPv4 address inside it, belongs to this computer or a private network."""
    if isinstance(address, IPv4Address):
        return not address.is_global or address.is_multicast
    inner = address.ipv4_mapped or address.sixtofour
    if address in _TRANSLATED or address in _COMPATIBLE:
        inner = IPv4Address(int(address) & 0xFFFF_FFFF)
    if inner:
        return is_private(inner)
    is_public = address.is_global and not (address.is_multicast or address.is_site_local)
    return not is_public or address in _LOCALLY_TRANSLATED


@dataclass(frozen=True)
class Network:
    """The functions that resolve the addresses of a host and decide which of them are private."""

    resolve: Callable[[str], Sequence[IPAddress]] = _resolved
    is_private: Callable[[IPAddress], bool] = is_private


def fetch_file(address: str, size: int, most_bytes: int, network: Network | None = None) -> bytes:
    """Fetch a file of at most ``most_bytes`` bytes. ``size`` is the size that Dify reports, or 0."""
    too_large = FileUnavailable(tool_errors.FETCHED_FILE_TOO_LARGE.format(most=most_bytes / 2**20))

    def content(response: httpx.Response) -> bytes:
        if response.raise_for_status().headers.get("Content-Encoding", "identity") != "identity":
            raise FileUnavailable(tool_errors.COMPRESSED)
        data = bytearray()
        for block in response.iter_raw():
            data += block
            if len(data) > most_bytes:
                raise too_large
        return bytes(data)

    if size > most_bytes:
        raise too_large
    return _read(address, content, network or Network())


_BASE64_AT_ONCE = 1024 * 1024
"""Number of characters that are decoded at once. Four characters are three bytes."""


def decoded(base64_text: str) -> bytes:
    """Decode a base64 text. Other sessions can run while a long text is decoded.

    Raises:
        ValueError: the text is not base64.
    """
    starts = range(0, len(base64_text), _BASE64_AT_ONCE)
    if starts and base64_text.find("=", 0, starts[-1]) >= 0:
        raise ValueError("something follows the padding")
    return b"".join(b64decode(base64_text[at : at + _BASE64_AT_ONCE], validate=True) for at in in_turns(starts))


def still_answers(address: str, seconds: float) -> bool:
    """Return whether there is a file at an address, without reading its content."""
    try:
        with Timeout(min(seconds, _SECONDS), FileUnavailable()):
            _read(address, httpx.Response.raise_for_status, Network())
    except FileUnavailable:
        return False
    return True


def _read[T](address: str, read: Callable[[httpx.Response], T], network: Network) -> T:
    """Read the response at an address, following redirects.

    The address and its redirects may be in a private network, as Dify's own files are. A redirect from a public host
    to a private network is refused.
    """
    try:
        url = httpx.URL(address)
        may_be_private = True
        for _ in range(_MOST_REDIRECTS + 1):
            with _opened(url, network, may_be_private=may_be_private) as (response, was_private):
                if not response.has_redirect_location:
                    return read(response)
                may_be_private = may_be_private and was_private()
                url = url.join(response.headers["Location"])
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, OSError):  # ValueError: IDNA cannot encode the host
        pass
    raise FileNotDelivered(tool_errors.NOT_FETCHED)


@contextmanager
def _opened(
    url: httpx.URL, network: Network, *, may_be_private: bool
) -> Iterator[tuple[httpx.Response, Callable[[], bool]]]:
    """Open the response at one address; yield it and a function that says whether it came from a private network.

    The connection uses an address that was already checked; the name is not resolved again. Because a proxy resolves
    the name itself, the name then counts as private if any of its addresses is private, and the response counts as
    private only if all addresses are.
    """
    host = url.raw_host.decode()
    proxy = _proxy(url)
    found = list[IPAddress]()
    if not (proxy and may_be_private):
        found += network.resolve(host)
    if not may_be_private and any(map(network.is_private, found)):
        raise FileUnavailable(tool_errors.PRIVATE_NETWORK)
    with httpx.Client(timeout=_SECONDS, verify=_trusted(), trust_env=False, proxy=proxy, headers=_HEADERS) as client:
        if proxy:
            with client.stream("GET", url) as response:
                yield response, lambda: all(map(network.is_private, network.resolve(host)))
            return
        ask = partial(client.stream, "GET", headers={"Host": url.netloc.decode()}, extensions={"sni_hostname": host})
        for tried, address in enumerate(found[:_MOST_ADDRESSES], start=1):
            with ExitStack() as opened:
                try:
                    response = opened.enter_context(ask(url.copy_with(host=str(address))))
                except (httpx.ConnectError, httpx.ConnectTimeout):
                    if tried == len(found[:_MOST_ADDRESSES]):
                        raise
                    continue
                yield response, partial(network.is_private, address)
                return
    raise FileNotDelivered(tool_errors.NOT_FETCHED)


@cache
def _trusted() -> ssl.SSLContext:
    """Return the cached SSL context. Loading all certificates takes about 50 ms, in which no other session runs."""
    return httpx.create_ssl_context()


def _proxy(url: httpx.URL) -> str | None:
    """Return the proxy to use: Dify's SSRF proxy, or else the one from HTTP_PROXY and similar variables."""
    own = (httpx.URL(os.environ.get(name, "")) for name in _OWN)
    is_own = any(url.host and (url.scheme, url.host, url.port) == (each.scheme, each.host, each.port) for each in own)
    usual = dict[str, str]()
    if not proxy_bypass(url.host):
        usual |= getproxies()
    names = ("SSRF_PROXY_ALL_URL", f"SSRF_PROXY_{url.scheme.upper()}_URL")
    against_forgery = [os.environ[name] for name in names if os.environ.get(name) and not is_own]
    return next(iter(against_forgery), usual.get(url.scheme) or usual.get("all"))

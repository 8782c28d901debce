"""Files of the turn, read from their addresses: of Dify's own file service, or wherever a user's link points.

In: an address. Out: the bytes of the file, as its server keeps them; FileUnavailable with a reason for the model, which
does not name the address, since it is signed. Dify's proxy against forged requests is used where the environment has
one (docs/host-facts.md, "Files of a turn").
"""

import os
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address

import httpx
from gevent import Timeout
from gevent.socket import getaddrinfo

_SECONDS = 10
"""For each step: to connect, and from one piece to the next. The whole has a limit of its caller's."""
_MOST_REDIRECTS = 5
_OWN = ("INTERNAL_FILES_URL", "FILES_URL", "CONSOLE_API_URL")
"""Variables of Dify with the beginning of its own files' addresses, which no proxy has to stand before."""


class FileUnavailable(Exception):  # noqa: N818 - its text is what the model reads
    """A file of this turn cannot be shown to the model."""

    def __init__(self, text: str = "", *, is_of_the_network: bool = False) -> None:
        super().__init__(text)
        self.is_of_the_network = is_of_the_network
        """Whether its server did not deliver it."""


def fetch_file(address: str, size: int, most_bytes: int) -> bytes:
    """The content of at most so many bytes. ``size``: what Dify says of it; 0 if it does not."""
    too_large = FileUnavailable(f"larger than {most_bytes / 2**20:.2f} MiB, not shown")
    if size > most_bytes:
        raise too_large
    return _read(address, lambda response: _content(response, most_bytes, too_large))


def still_answers(address: str, seconds: float) -> bool:
    """Whether there is a file behind an address, whose content is left to others."""
    try:
        with Timeout(min(seconds, _SECONDS), FileUnavailable()):
            _read(address, httpx.Response.raise_for_status)
    except FileUnavailable:
        return False
    return True


def _read[T](address: str, read: Callable[[httpx.Response], T]) -> T:
    """What ``read`` makes of the answer at an address, behind its redirects."""
    try:
        first = url = httpx.URL(address)
        for _ in range(_MOST_REDIRECTS + 1):
            with httpx.stream("GET", url, headers=_HEADERS, timeout=_SECONDS, proxy=_proxy(url)) as response:
                if response.next_request is None:
                    return read(response)
                url = response.next_request.url
            if _is_private(url) and not _is_private(first):
                raise FileUnavailable("could not be fetched: its address leads into a private network")
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, OSError):  # a host that IDNA cannot write is a ValueError
        pass
    raise FileUnavailable("could not be fetched", is_of_the_network=True)


_HEADERS = {"Accept-Encoding": "identity"}
"""A small file can unpack to gigabytes, and the whole process would wait for it."""


def _content(response: httpx.Response, most_bytes: int, too_large: FileUnavailable) -> bytes:
    response.raise_for_status()
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise FileUnavailable("could not be fetched: its server sends it compressed")
    data = bytearray()
    for block in response.iter_raw():
        data += block
        if len(data) > most_bytes:
            raise too_large
    return bytes(data)


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

"""A port that is chosen before the program that will listen on it: the SDK does not tell which port it got.

On Linux it is held from its choice on. A socket that is bound and does not listen keeps the kernel from giving the port
to anyone who asks for a free one, and a server that allows the reuse of addresses, as the SDK's does, may still listen.
"""

import socket
import sys
from typing import Final

from devhost.process.transports.program import LOOPBACK


class ReservedPort:
    def __init__(self) -> None:
        self._held = socket.socket()
        self._held.bind((LOOPBACK, 0))
        self.number: Final[int] = self._held.getsockname()[1]
        if sys.platform == "linux":
            self._held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        else:  # two sockets cannot have one port there, so that it is only free a moment ago
            self._held.close()

    def release(self) -> None:
        self._held.close()

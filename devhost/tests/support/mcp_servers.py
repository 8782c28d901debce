"""An MCP server of the tests, connected."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from devhost import HostLimits
from devhost.process.session import Session, Watcher
from devhost.protocol.wire import Invoked
from devhost.tools.mcp import McpServer, connected
from devhost.tools.tool import Tool
from support import mcp_everything

SCRIPT = Path(mcp_everything.__file__)
COMMAND = shlex.join([sys.executable, str(SCRIPT)])


class Told(Watcher):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def printed(self, plugin: str, text: str) -> None:
        self.lines.append(f"{plugin} | {text}")


def no_calls(_session: Session, _invoked: Invoked) -> None:
    raise AssertionError("a tool of an MCP server makes no backwards calls")


@contextmanager
def everything(target: str = COMMAND, secrets: dict[str, str] | None = None) -> Iterator[tuple[dict[str, Tool], Told]]:
    told = Told()
    with connected([McpServer("everything", target, secrets or {})], HostLimits(), told) as tools:
        yield {tool.name: tool for tool in tools}, told

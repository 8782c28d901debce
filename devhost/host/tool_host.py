"""Tool plugins that run, with Dify's services around them: the file service and the storage.

In: setups of tool plugins. Out: their tools, and answers to what the tools ask of the host. A flow without an Agent
node needs no more; `Host` adds a strategy plugin.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from devhost.errors import InvocationError
from devhost.files.server import FileServer
from devhost.host.backwards import BackwardsCalls
from devhost.host.starting import start_plugins, telling_of_failure
from devhost.host.storage import PluginStorage
from devhost.limits import HostLimits
from devhost.models.backend import ModelBackend
from devhost.models.request import OpaqueBodyPolicy
from devhost.node.messages.tool_files import ToolFileStore
from devhost.process.plugin_process import PluginProcess
from devhost.process.transports.transport import TransportName
from devhost.process.watcher import Watcher
from devhost.protocol.failures import ApiFault
from devhost.text.secrets import Secrets
from devhost.tools.setup import ToolSetup
from devhost.tools.tool import Tool, plugin_tools

STARTED_AGAIN = "A plugin has ended. The plugins are started again, as the daemon would start it."
"""What a chat says where its host has lost a plugin."""


@dataclass(frozen=True)
class Started:
    """What a host is made of."""

    plugins: Sequence[PluginProcess]
    """That of the strategies first, if there is one."""
    tools: Sequence[Tool]
    server: FileServer
    storage: PluginStorage
    limits: HostLimits
    watcher: Watcher
    secrets: Secrets
    to_close: ExitStack


def started(  # noqa: PLR0913 - a host's options, by keyword
    plugin: Path | None,
    tools: Sequence[Path | ToolSetup] = (),
    *,
    limits: HostLimits | None = None,
    files: Path | None = None,
    python: str = sys.executable,
    transport: TransportName = "stdio",
    watcher: Watcher | None = None,
    storage: PluginStorage | None = None,
) -> Started:
    """Starts the strategy plugin, if any, and a process for each tool plugin.

    Without a `storage`, what plugins store ends with the host.
    """
    limits = limits or HostLimits()
    watcher = watcher or Watcher()
    setups = [ToolSetup.read(tool) if isinstance(tool, Path) else tool for tool in tools]
    for notice in (notice for setup in setups for notice in setup.notices):
        watcher.notice(notice)
    secrets = Secrets(value for setup in setups for value in setup.secrets)
    with ExitStack() as starting, telling_of_failure(watcher):
        store = ToolFileStore(files)
        starting.callback(store.remove)
        server = starting.enter_context(FileServer(store))
        plugins = start_plugins(
            plugin, setups, transport, limits=limits, python=python, watcher=watcher, secrets=secrets
        )
        for running in plugins:
            starting.enter_context(running)
        offered: list[Tool] = []
        for process, setup in zip(plugins[len(plugins) - len(setups) :], setups, strict=True):
            offered += plugin_tools(process, setup, limits)
        kept = storage or PluginStorage()
        return Started(plugins, offered, server, kept, limits, watcher, secrets, starting.pop_all())


class ToolHost:
    """A context manager."""

    def __init__(self, parts: Started) -> None:
        self.tools = list(parts.tools)
        self.files = parts.server.store
        self.server = parts.server
        self.limits = parts.limits
        self.secrets = parts.secrets
        """The values that are replaced in everything that is shown or written of a run."""
        self._plugins = parts.plugins
        self._storage = parts.storage
        self._to_close = parts.to_close

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._to_close.close()

    @property
    def lost_a_plugin(self) -> bool:
        """Whether the process of a plugin has ended, so that the host has to be started again."""
        return any(plugin.lost is not None for plugin in self._plugins)

    def calls(
        self,
        model: ModelBackend,
        tools: Sequence[Tool],
        *,
        opaque_body: OpaqueBodyPolicy = "drop",
        api_fails: Mapping[str, ApiFault] | None = None,
        failed: Callable[[str, InvocationError], None] | None = None,
    ) -> BackwardsCalls:
        """The backwards calls of one run, of a strategy or of a tool."""
        return BackwardsCalls(
            model,
            tools,
            server=self.server,
            storage=self._storage,
            limits=self.limits,
            opaque_body=opaque_body,
            api_fails=api_fails,
            failed=failed,
        )


def start_tools(
    tools: Sequence[Path | ToolSetup],
    *,
    limits: HostLimits,
    files: Path | None = None,
    watcher: Watcher | None = None,
    storage: PluginStorage | None = None,
) -> ToolHost:
    return ToolHost(started(None, tools, limits=limits, files=files, watcher=watcher, storage=storage))

"""Starts strategy and tool plugins, and runs strategies as Dify's Agent node and its plugin daemon do."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self, TypedDict, Unpack

from devhost.errors import HostError, InvocationError, RunFailure, RunStoppedError, about
from devhost.files import FileServer
from devhost.host.backwards import BackwardsCalls, PluginStorage
from devhost.limits import HostLimits
from devhost.models.backend import ModelBackend, OpaqueBodyPolicy
from devhost.node.messages import ToolFileStore
from devhost.node.outputs.outputs import OutputsFold
from devhost.node.outputs.run import Run, RunError
from devhost.node.parameters import NodeVariables, PickedValue, node_parameters
from devhost.plugin.declaration import PluginDeclaration, Strategy, StrategyProvider
from devhost.process.environment import start_in_own_python
from devhost.process.plugin_process import PluginProcess, StartOptions
from devhost.process.program import TransportName
from devhost.process.session import QueuePlaces, Stop, Watcher
from devhost.protocol.failures import ApiFault
from devhost.protocol.wire import JsonObject
from devhost.text import Secrets, properties_of
from devhost.tools.mcp import McpServer, connected, secrets_of
from devhost.tools.setup import ToolSetup, start_tool_plugin
from devhost.tools.tool import PluginTool, Tool
from devhost.words import refuse_unknown

type Plugin = Path | PluginDeclaration
"""A plugin's folder, or the declaration that was read from it."""


def find_strategy(plugin: PluginDeclaration, name: str) -> tuple[StrategyProvider, Strategy]:
    with about("strategy"):
        refuse_unknown("strategy", name, plugin.strategies)
    return plugin.strategies[name]


def picked_settings(
    strategy: Strategy, model: JsonObject, tools: Sequence[Tool], variables: NodeVariables
) -> dict[str, object]:
    """Returns the values of the node's pickers for a model and for tools, by the strategy's parameter names.

    The values that the panel sets for tools may be templates.
    """
    entities = [
        {
            **tool.entity,
            "runtime_parameters": {
                name: variables.filled(value) if isinstance(value, str) else value
                for name, value in tool.entity["runtime_parameters"].items()
            },
        }
        for tool in tools
    ]
    picked = {"model-selector": PickedValue(model), "array[tools]": PickedValue(entities)}
    return {parameter.name: picked[parameter.type] for parameter in strategy.parameters if parameter.type in picked}


# Starts strategy plugins and tool plugins in parallel.


def start_plugins(
    strategies: Sequence[PluginDeclaration], tools: Sequence[ToolSetup], **options: Unpack[StartOptions]
) -> list[PluginProcess]:
    """Starts strategy plugins and tool plugins, and returns their processes in this order.

    If there are strategy plugins, the tool plugins run locally, whatever the transport is.
    """
    stop = Stop()
    given: StartOptions = {**options, "stop": stop}
    beside: StartOptions = {**given, "transport": "stdio"} if strategies else given
    starts = [(each.manifest.name, partial(start_in_own_python, each, **given)) for each in strategies]
    starts += [(setup.declaration.manifest.name, partial(start_tool_plugin, setup, **beside)) for setup in tools]
    if starts:
        return started_side_by_side(starts, options.get("watcher", Watcher()), stop)
    return []


def started_side_by_side(
    starts: Sequence[tuple[str, Callable[[], PluginProcess]]], watcher: Watcher, stop: Stop
) -> list[PluginProcess]:
    """Starts processes in parallel. `starts` pairs names with functions, and `stop` ends the processes.

    After an exception, including Ctrl-C, no process is left.
    """
    with ThreadPoolExecutor(len(starts)) as pool:
        try:
            futures = {pool.submit(begin): name for name, begin in starts}
            waiting = set(futures)
            while waiting:
                watcher.starting([name for future, name in futures.items() if future in waiting])
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
            watcher.starting([])
            return [future.result() for future in futures]
        except BaseException:
            stop.request()
            raise


@contextmanager
def telling_of_failure(watcher: Watcher) -> Iterator[None]:
    """Reports a failed start to the watcher, so that a trace without a run says why there is none."""
    try:
        yield
    except HostError as error:
        watcher.notice(f"not started: {error}")
        raise


# Running plugins, with Dify's services around them. A flow without an Agent node needs no strategy plugin.

STARTED_AGAIN = "A plugin has ended. The plugins are started again, as the daemon would start it."
"""The message in a chat whose host has lost a plugin."""


class HostSettings(TypedDict, total=False):
    """The options of a host."""

    limits: HostLimits
    files: Path | None
    """The folder for the files of runs. The default is a folder that is removed with the host."""
    python: str
    installs: bool
    """Whether a .venv is created for a plugin that needs packages and has none. By default, none is created."""
    transport: TransportName
    watcher: Watcher | None
    storage: PluginStorage | None
    """The storage of plugins. The default storage ends with the host."""
    servers: Sequence[McpServer]
    """MCP servers, whose tools come after the tools of plugins."""
    others: Sequence[PluginDeclaration]
    """Further strategy plugins, for the agents of one flow."""


class ToolHost:
    """A context manager for running tool plugins, with their file service and storage."""

    def __init__(
        self, plugin: Plugin | None, tools: Sequence[Path | ToolSetup], **options: Unpack[HostSettings]
    ) -> None:
        self.limits = options.get("limits") or HostLimits()
        self._watcher = options.get("watcher") or Watcher()
        self.setups = setups = [ToolSetup.read(tool) if isinstance(tool, Path) else tool for tool in tools]
        for notice in (notice for setup in setups for notice in setup.notices):
            self._watcher.notice(notice)
        servers = options.get("servers", ())
        self.secrets = Secrets([*(value for setup in setups for value in setup.secrets), *secrets_of(servers)])
        """The values that are masked in everything that is shown or written about a run."""
        given: StartOptions = {
            "limits": self.limits,
            "watcher": self._watcher,
            "python": options.get("python", sys.executable),
            "installs": options.get("installs", False),
            "transport": options.get("transport", "stdio"),
            "secrets": self.secrets,
        }
        with ExitStack() as starting, telling_of_failure(self._watcher):
            kept = options.get("files") or starting.enter_context(TemporaryDirectory(prefix="devhost-files-"))
            self.files = ToolFileStore(Path(kept))
            self.server = starting.enter_context(FileServer(self.files))
            storage = options.get("storage") or PluginStorage()
            self.calls = partial(BackwardsCalls, server=self.server, storage=storage, limits=self.limits)
            """Creates the object that answers the backwards calls of one run of a strategy or a tool."""
            declared = PluginDeclaration.read(plugin) if isinstance(plugin, Path) else plugin
            strategies = [*filter(None, (declared,)), *options.get("others", ())]
            self._plugins = start_plugins(strategies, setups, **given)
            """All plugins, strategy plugins first."""
            for running in self._plugins:
                starting.enter_context(running)
            of_tools = self._plugins[len(self._plugins) - len(setups) :]
            self.tools: list[Tool] = [
                PluginTool(process, setup, offered)
                for process, setup in zip(of_tools, setups, strict=True)
                for offered in setup.tools
            ]
            self.tools += starting.enter_context(connected(servers, self.limits, self._watcher))
            self._to_close = starting.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._to_close.close()

    @property
    def lost_a_plugin(self) -> bool:
        """Whether the process of a plugin has ended, in which case the host must be restarted."""
        return any(plugin.lost is not None for plugin in self._plugins)


def start_tools(tools: Sequence[Path | ToolSetup], **options: Unpack[HostSettings]) -> ToolHost:
    """Starts tool plugins. All tools in a folder can be called, including those that Dify does not offer to agents."""
    setups = [ToolSetup.read(tool).with_every_tool() if isinstance(tool, Path) else tool for tool in tools]
    return ToolHost(None, setups, **options)


type OnMessage = Callable[[JsonObject], None]


class Host(ToolHost):
    """A running strategy plugin with its tool plugins, and the node and daemon around them.

    Create this context manager with `Host.start`. `run` may be called from many threads at once.
    """

    @classmethod
    def start(cls, plugin: Plugin, *, tools: Sequence[Path | ToolSetup] = (), **options: Unpack[HostSettings]) -> Self:
        """Starts the strategy plugin and a process for each tool plugin. Leaving the context ends all processes."""
        return cls(plugin, tools, **options)

    @property
    def plugin(self) -> PluginProcess:
        """The strategy plugin, or the first one if there are several."""
        return self._plugins[0]

    @property
    def strategy_plugins(self) -> Sequence[PluginProcess]:
        return self._plugins[: len(self._plugins) - len(self.setups)]

    def run(  # noqa: PLR0913 - a run's options are keywords
        self,
        strategy: str,
        parameters: Mapping[str, object],
        *,
        model: ModelBackend,
        tools: Sequence[Tool] | None = None,
        history: Sequence[JsonObject] = (),
        opaque_body: OpaqueBodyPolicy = "drop",
        api_fails: Mapping[str, ApiFault] | None = None,
        conversation_id: str | None = None,
        on_message: OnMessage | None = None,
        stop: Stop | None = None,
        variables: Mapping[str, object] | None = None,
        plugin: PluginProcess | None = None,
    ) -> Run:
        """Runs the node once.

        `parameters` are settings as in `node/parameters.py`. `variables` are the workflow's variables by `node.name`.
        If there are several strategy plugins, `plugin` is the one with this strategy.
        """
        if tools is None:
            tools = self.tools
        plugin = plugin or self.plugin
        provider, declared = find_strategy(plugin.declaration, strategy)
        known = NodeVariables(variables or {})
        picked = picked_settings(declared, model.description.selector(history), tools, known)
        request = {
            "user_id": "devhost",
            "type": "agent_strategy",
            "action": "invoke_agent_strategy",
            "agent_strategy_provider": provider.identity.name,
            "agent_strategy": declared.identity.name,
            "agent_strategy_params": node_parameters(declared.parameters, {**picked, **parameters}, known),
        }
        calls = self.calls(model, tools, opaque_body=opaque_body, api_fails=api_fails or {}, failed=self._tool_failed)
        fold = OutputsFold(self.files, self.limits, frozenset(properties_of(declared.output_schema)))
        error = None
        was_stopped = False
        session_id = ""
        self._renew_prints()
        began = time.monotonic()
        try:
            places = QueuePlaces(self.limits.burst_messages, partial(calls.found, "message-lost"))
            with plugin.open_session(request, conversation_id, places=places) as session:
                session_id = session.id
                if stop is not None:
                    stop.ends(session.stop)
                said = session.messages(calls.answer, self.limits.run_seconds, fold.decoded)
                for shown in fold.play(map(self.secrets.masked, said)):
                    if on_message is not None:
                        on_message(shown.on_the_wire())
        except RunFailure as failure:
            error = self.secrets.masked(RunError.of(failure))
            was_stopped = isinstance(failure, RunStoppedError)
        elapsed = round(time.monotonic() - began, 3)
        made = self.secrets.masked(calls.made)
        found = [*fold.findings(was_stopped=was_stopped), *calls.findings]
        run = Run(strategy, fold.outputs(), error, found, fold.messages, elapsed, made, session_id)
        self._renew_prints()
        self._watcher.ended(session_id, run, model.description)
        if calls.fault is not None:
            raise calls.fault
        return run

    def _renew_prints(self) -> None:
        """Resets the count of plugin output, which is limited for each run."""
        for plugin in self._plugins:
            plugin.printed.renew()

    def _tool_failed(self, tool: str, error: InvocationError) -> None:
        self._watcher.failed(tool, self.secrets.masked(RunError.of(error)))

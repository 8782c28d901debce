"""The Agent node and the daemon around one strategy plugin: casts the parameters, invokes, answers, folds the outputs.

In: a strategy's name, parameter values, a model. Out: a `Run`. One host serves many runs at once, each from a thread
of its own.
"""

import contextlib
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from devhost import declaration
from devhost.backwards import BackwardsCalls
from devhost.casting import cast_parameters
from devhost.errors import ParameterError, RunFailure
from devhost.limits import HostLimits
from devhost.model_backend import ModelBackend
from devhost.model_request import OpaqueBodyPolicy
from devhost.outputs import OutputsFold
from devhost.plugin_process import PluginProcess
from devhost.run import Run, RunError
from devhost.tool_files import ToolFileStore
from devhost.tools import Tool, plugin_tools
from devhost.wire import JsonObject

type OnMessage = Callable[[JsonObject], None]


class Host:
    def __init__(self, plugin: PluginProcess, tools: Sequence[Tool], files: ToolFileStore, limits: HostLimits) -> None:
        self.plugin = plugin
        self.tools = list(tools)
        self.files = files
        self.limits = limits
        self._to_close = ExitStack()

    @classmethod
    def start(
        cls,
        plugin: Path,
        *,
        tools: Sequence[Path] = (),
        limits: HostLimits | None = None,
        files: Path | None = None,
        python: str = sys.executable,
    ) -> Self:
        """Starts the strategy plugin and a process for each tool plugin; leaving the host ends them all."""
        limits = limits or HostLimits()
        with ExitStack() as started:
            store = ToolFileStore(files)
            started.callback(store.remove)
            process = started.enter_context(PluginProcess.start(plugin, limits=limits, python=python))
            offered: list[Tool] = []
            for directory in tools:
                tool_process = started.enter_context(PluginProcess.start(directory, limits=limits, python=python))
                offered += plugin_tools(tool_process, limits)
            host = cls(process, offered, store, limits)
            host._to_close = started.pop_all()
        return host

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._to_close.close()

    def run(  # noqa: PLR0913 - a run's options, by keyword
        self,
        strategy: str,
        parameters: Mapping[str, object],
        *,
        model: ModelBackend,
        tools: Sequence[Tool] | None = None,
        history: Sequence[JsonObject] = (),
        opaque_body: OpaqueBodyPolicy = "keep",
        on_message: OnMessage | None = None,
    ) -> Run:
        tools = self.tools if tools is None else tools
        provider, declared = find_strategy(self.plugin.declaration, strategy)
        filled = {**_selectors(declared, model.description.selector(history), tools), **parameters}
        request = {
            "user_id": "devhost",
            "type": "agent_strategy",
            "action": "invoke_agent_strategy",
            "agent_strategy_provider": provider.identity.name,
            "agent_strategy": declared.identity.name,
            "agent_strategy_params": cast_parameters(declared.parameters, filled),
        }
        calls = BackwardsCalls(model, tools, self.files, self.limits, opaque_body)
        run = self._converse(strategy, request, calls, on_message)
        if calls.fault is not None:
            raise calls.fault
        return run

    def _converse(self, strategy: str, request: JsonObject, calls: BackwardsCalls, on_message: OnMessage | None) -> Run:
        began = time.monotonic()
        fold = OutputsFold(self.files, self.limits)
        messages: list[JsonObject] = []
        error = None
        try:
            with self.plugin.open_session(request) as session:
                for data in session.messages(calls.answer, self.limits.run_seconds):
                    messages.append(data)
                    for message in fold.add(data):
                        if on_message is not None:
                            on_message(message.on_the_wire())
        except RunFailure as failure:
            error = RunError.of(failure)
        return Run(strategy, fold.outputs(), error, fold.findings(), messages, time.monotonic() - began)


def find_strategy(
    plugin: declaration.PluginDeclaration, name: str
) -> tuple[declaration.StrategyProvider, declaration.Strategy]:
    with contextlib.suppress(KeyError):
        return plugin.strategies[name]
    raise ParameterError(f"there is no strategy {name!r}; {plugin.manifest.name} has: {', '.join(plugin.strategies)}")


def _selectors(strategy: declaration.Strategy, model: JsonObject, tools: Sequence[Tool]) -> JsonObject:
    """What the node's own pickers hold: the model and the tools, under whatever names the strategy gave them."""
    picked: dict[str, object] = {"model-selector": model, "array[tools]": [tool.entity for tool in tools]}
    return {parameter.name: picked[parameter.type] for parameter in strategy.parameters if parameter.type in picked}

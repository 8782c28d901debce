"""The Agent node and the daemon around one strategy plugin: casts the parameters, invokes, answers, folds the outputs.

In: a strategy's name, parameter values, a model. Out: a `Run`. One host serves many runs at once, each from a thread
of its own.
"""

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Self

from devhost.errors import InvocationError, RunFailure, RunStoppedError
from devhost.host.agent_node import built_parameters, declared_outputs, find_strategy, node_request, picked_values
from devhost.host.backwards import BackwardsCalls
from devhost.host.storage import PluginStorage
from devhost.host.tool_host import Started, ToolHost, started
from devhost.limits import HostLimits
from devhost.models.backend import ModelBackend
from devhost.models.request import OpaqueBodyPolicy
from devhost.node.messages.message import Message
from devhost.node.outputs.fold import OutputsFold
from devhost.node.outputs.outputs import Finding
from devhost.node.outputs.run import Run, RunError
from devhost.process.session import Session
from devhost.process.stop import Stop
from devhost.process.transports.transport import TransportName
from devhost.process.watcher import Watcher
from devhost.protocol.failures import ApiFault
from devhost.protocol.wire import JsonObject
from devhost.tools.setup import ToolSetup
from devhost.tools.tool import Tool

type OnMessage = Callable[[JsonObject], None]


class Host(ToolHost):
    """A running strategy plugin with its tool plugins, and the node and daemon around them.

    A context manager, made by `Host.start`. `run` may be called from many threads at once.
    """

    def __init__(self, parts: Started) -> None:
        super().__init__(parts)
        self.plugin = parts.plugins[0]
        self._plugins = parts.plugins
        self._watcher = parts.watcher

    @classmethod
    def start(  # noqa: PLR0913 - a host's options, by keyword
        cls,
        plugin: Path,
        *,
        tools: Sequence[Path | ToolSetup] = (),
        limits: HostLimits | None = None,
        files: Path | None = None,
        python: str = sys.executable,
        transport: TransportName = "stdio",
        watcher: Watcher | None = None,
        storage: PluginStorage | None = None,
    ) -> Self:
        """Starts the strategy plugin and a process for each tool plugin; leaving the host ends them all.

        Without a `storage`, what plugins store ends with the host.
        """
        return cls(
            started(
                plugin,
                tools,
                limits=limits,
                files=files,
                python=python,
                transport=transport,
                watcher=watcher,
                storage=storage,
            )
        )

    def run(  # noqa: PLR0913 - a run's options, by keyword
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
        conversation_variables: Iterable[str] = (),
        raw: bool = False,
        strict: bool = False,
    ) -> Run:
        """Runs the node once.

        `parameters` are settings as `node.parameters.read_setting` reads them, `variables` those of the workflow, by
        `node.name`. `conversation_variables` are those of the strategy that the conversation keeps. `raw` sends the
        parameters as they are given; `strict` goes on after an error that fails the node, to find all errors.
        """
        tools = self.tools if tools is None else tools
        provider, declared = find_strategy(self.plugin.declaration, strategy)
        picked = picked_values(declared, model.description.selector(history), tools)
        values = {**picked, **parameters} if raw else built_parameters(declared, picked, parameters, variables)
        request = node_request(provider, declared, values)
        calls = self.calls(model, tools, opaque_body=opaque_body, api_fails=api_fails, failed=self._tool_failed)
        opened = partial(self._open, request, conversation_id, stop)
        kept = frozenset(conversation_variables)
        fold = OutputsFold(self.files, self.limits, declared_outputs(declared), kept=kept, goes_on=strict)
        self._renew_prints()
        run = self._converse(strategy, opened, calls, fold, on_message)
        self._renew_prints()
        self._watcher.ended(run.session_id, run, model.description)
        if calls.fault is not None:
            raise calls.fault
        return run

    def _renew_prints(self) -> None:
        """What plugins print is bounded for each run."""
        for plugin in self._plugins:
            plugin.printed.renew()

    def _tool_failed(self, tool: str, error: InvocationError) -> None:
        self._watcher.failed(tool, self.secrets.masked(RunError.of(error)))

    def _open(self, request: JsonObject, conversation_id: str | None, stop: Stop | None) -> Session:
        session = self.plugin.open_session(request, conversation_id)
        if stop is not None:
            stop.ends(session)
        return session

    def _converse(
        self,
        strategy: str,
        opened: Callable[[], Session],
        calls: BackwardsCalls,
        fold: OutputsFold,
        on_message: OnMessage | None,
    ) -> Run:
        began = time.monotonic()
        messages: list[JsonObject] = []
        error, was_stopped = None, False
        session_id = ""
        losses: list[str] = []
        try:
            with opened() as session:
                session_id, losses = session.id, session.losses
                for sent in session.messages(calls.answer, self.limits.run_seconds, fold.decoded):
                    data = self.secrets.masked(sent)
                    messages.append(data)
                    _show(fold.add(data), on_message)
                if fold.failure is not None:
                    raise fold.failure
                _show(fold.finish(), on_message)
        except RunFailure as failure:
            error, was_stopped = self.secrets.masked(RunError.of(failure)), isinstance(failure, RunStoppedError)
        elapsed, made = round(time.monotonic() - began, 3), self.secrets.masked(calls.made)
        found = fold.findings(was_stopped=was_stopped)
        findings = [*found, *calls.findings, *(Finding("message-lost", lost) for lost in losses)]
        return Run(strategy, fold.outputs(), error, findings, messages, elapsed, made, session_id)


def _show(messages: Iterable[Message], on_message: OnMessage | None) -> None:
    for message in messages:
        if on_message is not None:
            on_message(message.on_the_wire())

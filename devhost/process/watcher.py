"""The interface of an observer of all messages between the host and its plugins, over any transport."""

from collections.abc import Sequence
from typing import Literal

from devhost.models.backend import ModelDescription
from devhost.node.outputs.run import Run, RunError
from devhost.protocol.wire import JsonObject

type Side = Literal["host", "plugin"]


class Watcher:
    """Is told of what happens between the host and its plugins, from many threads; this one does nothing."""

    def crossed(self, side: Side, plugin: str, message: JsonObject) -> None:
        """A message that `side` sent; `plugin` is the plugin that sent or gets it."""

    def starting(self, plugins: Sequence[str]) -> None:
        """The plugins that are starting; told again each time one is done."""

    def printed(self, plugin: str, text: str, *, exact: bool) -> None:
        """A line that the plugin printed, without secrets; `exact`: after all messages of it that came before."""

    def failed(self, tool: str, error: RunError) -> None:
        """A call of a tool of a tool plugin failed; its error has the traceback."""

    def serving(self, session_id: str, request_id: str) -> None:
        """A session that begins now answers the backwards call of another plugin."""

    def ended(self, session_id: str, run: Run, model: ModelDescription) -> None:
        """A session of the strategy has ended with this run."""

    def notice(self, sentence: str) -> None:
        """About the plugins before a run: a tool that is left out, or why they did not start."""

    def remark(self, sentence: str) -> None:
        """A sentence about the model after a run; often empty."""


class Watchers(Watcher):
    """Tells each of several."""

    def __init__(self, *watchers: Watcher) -> None:
        self._watchers = watchers

    def crossed(self, side: Side, plugin: str, message: JsonObject) -> None:
        for watcher in self._watchers:
            watcher.crossed(side, plugin, message)

    def starting(self, plugins: Sequence[str]) -> None:
        for watcher in self._watchers:
            watcher.starting(plugins)

    def printed(self, plugin: str, text: str, *, exact: bool) -> None:
        for watcher in self._watchers:
            watcher.printed(plugin, text, exact=exact)

    def failed(self, tool: str, error: RunError) -> None:
        for watcher in self._watchers:
            watcher.failed(tool, error)

    def serving(self, session_id: str, request_id: str) -> None:
        for watcher in self._watchers:
            watcher.serving(session_id, request_id)

    def ended(self, session_id: str, run: Run, model: ModelDescription) -> None:
        for watcher in self._watchers:
            watcher.ended(session_id, run, model)

    def notice(self, sentence: str) -> None:
        for watcher in self._watchers:
            watcher.notice(sentence)

    def remark(self, sentence: str) -> None:
        for watcher in self._watchers:
            watcher.remark(sentence)

"""The interface of an observer of all messages between the host and its plugins, over any transport."""

from typing import Literal

from devhost.models.backend import ModelDescription
from devhost.node.outputs.run import Run
from devhost.protocol.wire import JsonObject

type Side = Literal["host", "plugin"]


class Watcher:
    """Is told of every message between the host and its plugins, from many threads; this one does nothing."""

    def crossed(self, side: Side, plugin: str, message: JsonObject) -> None:
        """A message that `side` sent; `plugin` is the plugin that sent or gets it."""

    def serving(self, session_id: str, request_id: str) -> None:
        """A session that begins now answers the backwards call of another plugin."""

    def ended(self, session_id: str, run: Run, model: ModelDescription) -> None:
        """A session of the strategy has ended with this run."""

    def notice(self, sentence: str) -> None:
        """About the plugins before a run: a tool that is left out, or why they did not start."""

    def remark(self, sentence: str) -> None:
        """A sentence about the model after a run; often empty."""

"""Whoever wants to see what crosses between the host and its plugins, whatever transport carries it.

Called from many threads. This one looks away; a trace writes it all down.
"""

from typing import Literal

from devhost.models.backend import ModelDescription
from devhost.node.outputs.run import Run
from devhost.protocol.wire import JsonObject

type Side = Literal["host", "plugin"]


class Watcher:
    """Is told of every message between the host and its plugins, from many threads; this one does nothing."""

    def crossed(self, side: Side, plugin: str, message: JsonObject) -> None:
        """A message that `side` sent; `plugin` is the one that said it, or that it was said to."""

    def ended(self, session_id: str, run: Run, model: ModelDescription) -> None:
        """What the host made of a session of the strategy's."""

    def remark(self, sentence: str) -> None:
        """What is to be said of a run's model afterwards; often nothing."""

"""The model of a node, looked for only when it is asked: a node may not run, and a tool may ask no model."""

from collections.abc import Iterator
from functools import cached_property

from devhost.flow.document import FlowNode
from devhost.flow.engine.turn.playing import Playing
from devhost.models.backend import ModelBackend, ModelDescription
from devhost.models.request import ModelRequest
from devhost.protocol.wire import JsonObject


class AskedModel:
    def __init__(self, node: FlowNode, playing: Playing) -> None:
        self._node = node
        self._playing = playing

    @cached_property
    def _backend(self) -> ModelBackend:
        with self._playing.mistakes.watched():
            return self._playing.around.model(self._node, self._playing.turn.query)

    @property
    def description(self) -> ModelDescription:
        return self._backend.description

    def invoke(self, request: ModelRequest, /) -> Iterator[JsonObject]:
        return self._backend.invoke(request)

"""A turn from its events: each is shown as it comes, and what remains of it is kept."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from devhost.flow.events import FlowEnded, FlowEvent, NodeEnded
from devhost.text.secrets import Secrets


@dataclass(frozen=True)
class PlayedTurn:
    nodes: tuple[NodeEnded, ...]
    """In the order in which they ended."""
    ended: FlowEnded
    seconds: float


def watched(events: Iterable[FlowEvent], show: Callable[[FlowEvent], None], hidden: Secrets) -> PlayedTurn:
    """The last event of a turn is a `FlowEnded`. `hidden`: what is replaced in all that is shown and kept."""
    began = time.monotonic()
    nodes: list[NodeEnded] = []
    for event in map(hidden.masked, events):
        show(event)
        match event:
            case NodeEnded():
                nodes.append(event)
            case FlowEnded():
                return PlayedTurn(tuple(nodes), event, time.monotonic() - began)
    raise AssertionError("a turn ended without an end")

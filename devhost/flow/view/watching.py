"""A turn from its events: each is shown as it comes, and what remains of it is kept."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from devhost.flow.events import FlowEnded, FlowEvent, NodeEnded


@dataclass(frozen=True)
class PlayedTurn:
    nodes: tuple[NodeEnded, ...]
    """In the order in which they ended."""
    ended: FlowEnded
    seconds: float


def watched(events: Iterable[FlowEvent], show: Callable[[FlowEvent], None]) -> PlayedTurn:
    """The last event of a turn is a `FlowEnded`."""
    began = time.monotonic()
    nodes: list[NodeEnded] = []
    for event in events:
        show(event)
        match event:
            case NodeEnded():
                nodes.append(event)
            case FlowEnded():
                return PlayedTurn(tuple(nodes), event, time.monotonic() - began)
    raise AssertionError("a turn ended without an end")

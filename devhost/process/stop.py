"""Ends a turn from outside, as Dify's Stop does: what still comes is dropped, and the plugin is not told.

`request` may be called from a signal handler: it takes no lock.
"""

from typing import Protocol


class Stoppable(Protocol):
    def stop(self) -> None:
        """Takes no lock either."""


class Stop:
    """Ends what it was given to, such as sessions; for one turn only, in which a flow may have several."""

    def __init__(self) -> None:
        self.requested = False
        self._stoppable: list[Stoppable] = []

    def request(self) -> None:
        self.requested = True
        for each in tuple(self._stoppable):
            each.stop()

    def ends(self, stoppable: Stoppable) -> None:
        """At the request; at once if it came before."""
        self._stoppable.append(stoppable)
        if self.requested:
            stoppable.stop()

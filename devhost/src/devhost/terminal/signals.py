"""Ctrl-C in a conversation: during a turn it ends that turn, at the prompt it is Python's own KeyboardInterrupt.

A handler instead of an exception: an exception could strike in the middle of a line that is written to a plugin.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from devhost.process.session import Stop


@contextmanager
def on_ctrl_c(show: Callable[[], None]) -> Iterator[None]:
    """Shows what a person wants to see of what Ctrl-C ended; the exception goes on."""
    try:
        yield
    except KeyboardInterrupt:
        show()
        raise


class Interrupt:
    def __init__(self, *, only_turns: bool = False) -> None:
        """`only_turns`: between two turns it has no effect, because it was meant for the turn that has just ended."""
        self._only_turns = only_turns
        self._stop: Stop | None = None

    @contextmanager
    def handled(self) -> Iterator[None]:
        before = signal.signal(signal.SIGINT, self._handle)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    @contextmanager
    def stops_a_turn(self) -> Iterator[Stop]:
        self._stop = Stop()
        try:
            yield self._stop
        finally:
            self._stop = None

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        if self._stop is not None:
            self._stop.request()
        elif not self._only_turns:
            raise KeyboardInterrupt

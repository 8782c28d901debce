"""How a turn ends before its nodes do: a person stops it, or a branch fails while others still work.

What agents, tools and models still send is dropped then, as in Dify: their plugins and providers are not told.
"""

import time
from collections.abc import Iterable, Iterator
from queue import SimpleQueue
from threading import Thread

from graphon.runtime.execution import GraphExecution

from devhost.errors import RunStoppedError
from devhost.process.stop import Stop


class Ending:
    def __init__(self, stop: Stop | None) -> None:
        """`stop`: a person's, if there is one."""
        self.stop = stop or Stop()
        self._is_over = False
        self._execution: GraphExecution | None = None

    def begins(self, execution: GraphExecution) -> None:
        """A stretch of the turn, with the engine's record of it."""
        self._execution = execution

    def end(self) -> None:
        """The engine has no more events."""
        self._is_over = True
        self.stop.request()

    def wait(self) -> None:
        """Until the engine knows of the stop: a node that ended before would fail, and take an error branch."""
        while not (self._is_over or (self._execution is not None and self._execution.aborted)):
            time.sleep(0.01)

    def until_stopped[T](self, values: Iterable[T]) -> Iterator[T]:
        """The values as they come; RunStoppedError as soon as the turn ends."""
        reading = _Reading(values)
        self.stop.ends(reading)
        try:
            yield from reading
        except RunStoppedError:
            self.wait()
            raise
        finally:
            reading.stop()


class _Reading[T]:
    """Reads in a thread of its own, because what is read may not send anything for a long time."""

    def __init__(self, values: Iterable[T]) -> None:
        self._values = values
        self._said: SimpleQueue[tuple[T] | Exception | None] = SimpleQueue()
        self._stopped = False

    def __iter__(self) -> Iterator[T]:
        Thread(target=self._read, daemon=True).start()
        while True:
            said = self._said.get()
            if self._stopped:
                raise RunStoppedError("the run was stopped")
            match said:
                case (value,):
                    yield value
                case Exception():
                    raise said
                case None:
                    return

    def stop(self) -> None:
        """May be called from a signal handler: it takes no lock."""
        self._stopped = True
        self._said.put(None)

    def _read(self) -> None:
        try:
            for value in self._values:
                if self._stopped:
                    return
                self._said.put((value,))
            self._said.put(None)
        except Exception as error:  # noqa: BLE001 - raised again where the values are read
            self._said.put(error)

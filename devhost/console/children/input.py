"""Lines for the input of a process, which a thread of its own writes.

A pipe holds 64 KiB, and a process that starts, or that is busy with a turn, does not read.

In: lines. Out: whether they are accepted; those that a process did not read before its end are lost.
"""

import contextlib
import queue
import threading
from typing import IO


class Input:
    def __init__(self, pipe: IO[bytes]) -> None:
        self.told = 0
        """How many lines were accepted."""
        self._pipe = pipe
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._accepting = threading.Lock()
        self._is_open = True
        threading.Thread(target=self._write_all, daemon=True).start()

    def tell(self, line: str, after: int | None) -> bool:
        """Whether it is accepted. `after`: how many must have been before; None for any number."""
        with self._accepting:
            if not self._is_open or after not in {None, self.told}:
                return False
            self.told += 1
            self._lines.put(line.encode() + b"\n")
            return True

    def close(self) -> None:
        """After the lines that were accepted."""
        with self._accepting:
            if self._is_open:
                self._is_open = False
                self._lines.put(None)

    @property
    def closed(self) -> bool:
        return self._pipe.closed

    def _write_all(self) -> None:
        while (line := self._lines.get()) is not None:
            with contextlib.suppress(OSError):  # it has ended
                self._pipe.write(line)
                self._pipe.flush()
        with contextlib.suppress(OSError):
            self._pipe.close()

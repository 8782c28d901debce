"""Mistakes of the command or in devhost, which end a flow at once.

A failure of the flow itself fails its node, and the engine's retry, error branch and default value apply. A mistake,
such as a node without turns in the script, is not the flow's: no branch of it may hide it. The engine cannot tell the
two apart, so that devhost's nodes do everything inside `watched()`.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from devhost.errors import RunFailure


class Mistakes:
    """Thread-safe: nodes run side by side."""

    def __init__(self) -> None:
        self._first: Exception | None = None
        self._noting = threading.Lock()

    @contextmanager
    def watched(self, *failures: type[Exception]) -> Iterator[None]:
        """Notes every exception but a `RunFailure` and `failures`, which are the flow's own.

        After a mistake no further node does anything: the mistake is raised at once.
        """
        self.raise_first()
        try:
            yield
        except Exception as error:
            if isinstance(error, (RunFailure, *failures)):
                raise
            with self._noting:
                self._first = self._first or error
            raise

    def raise_first(self) -> None:
        if self._first is not None:
            raise self._first

"""A form that is sent twice at once, as by a double click, starts one run."""

import threading
import time
from collections.abc import Callable

SECONDS = 5.0
"""After the start. Who goes back to the page later, and sends its form again, wants another run."""


class Once:
    def __init__(self) -> None:
        self._starting = threading.Lock()
        self._started: dict[str, tuple[float, str]] = {}
        """When, and the name, by key."""

    def name(self, key: str, start: Callable[[], str]) -> str:
        """`key`: empty for a form without one, which always starts a run."""
        with self._starting:
            now = time.monotonic()
            self._started = {each: run for each, run in self._started.items() if now < run[0] + SECONDS}
            if key and key in self._started:
                return self._started[key][1]
            name = start()
            self._started[key] = time.monotonic(), name
            return name

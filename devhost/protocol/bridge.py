"""The daemon's queue between a plugin and Dify's API: a message that comes while all places are taken is lost.

The daemon has two: 128 places for a run's messages, 1,024 for the answers of a backwards call.
"""

import threading

from devhost.text.counted import counted

ANSWER_PLACES_FOR_EACH_OF_A_RUN = 8


class Bridge:
    """Counts waiting messages; with 0 places nothing is lost. Thread-safe."""

    def __init__(self, places: int) -> None:
        self.places = places
        self._came = 0
        self._waiting = 0
        self.losses: list[str] = []
        """One sentence for each message that was lost."""
        self._counting = threading.Lock()

    def admits(self, what: str) -> bool:
        """Whether a message gets a place; `what` names it in the list of losses."""
        with self._counting:
            self._came += 1
            if self.places and self._waiting >= self.places:
                before = f"{counted(self.places, 'message')} waited before it"
                self.losses.append(f"message {self._came} ({what}) was lost: {before}")
                return False
            self._waiting += 1
            return True

    def passed_on(self) -> None:
        with self._counting:
            self._waiting -= 1

"""What a plugin prints, line by line: harmless, without secrets, and not more than a person can read.

In: lines on stdout and stderr that are not messages, and records of the SDK's logger. Out: texts for the plugin's
watcher. Of one run the first lines are passed on at once; what comes after them is counted, and when the run is over
the last lines follow.
"""

import json
import re
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from rich.text import Text

from devhost.process.transports.lines import LONGEST as LONGEST_READ
from devhost.text.counted import counted
from devhost.text.secrets import Secrets

LONGEST = 2_000
"""Characters of one line."""
MOST, LAST = 400, 20
"""Lines of one run: the first ones, and the last ones."""
KEPT = 200
"""Lines, for error messages."""
_OF_THE_SDK = re.compile(
    r"Installed (?:tool|model|endpoint|agent|trigger provider): "
    r"| *\* (?:Serving Flask app |Running on http|Server Worker: )"
    r'|127\.0\.0\.1 - - \[[^\]]*\] "(?:GET /health|POST /invoke)\b'
)
"""What the SDK itself prints when it starts and when it serves HTTP."""


@dataclass(frozen=True)
class Printed:
    text: str
    exact: bool = False
    """It came on the same channel as the messages, so that it is known which of them came before it."""


class PrintedLines:
    """Of one plugin; may be added to from many threads."""

    def __init__(self, told: Callable[[Printed], None]) -> None:
        self.kept: deque[str] = deque(maxlen=KEPT)
        self._told = told
        self._secrets = Secrets()
        self._count = 0
        self._last: deque[Printed] = deque(maxlen=LAST)
        self._adding = threading.Lock()

    def hide(self, secrets: Secrets) -> None:
        self._secrets = secrets.line_by_line()

    def masked(self, text: str) -> str:
        return self._secrets.masked(text)

    def add(self, line: str, *, exact: bool = False) -> None:
        line = record_text(line)
        if _OF_THE_SDK.match(line):
            return
        with self._adding:
            self._count += 1
            if self._count > MOST:
                self._last.append(Printed(line[:LONGEST_READ], exact))
                return
            self._pass_on(Printed(line, exact))

    def renew(self) -> None:
        """A run begins or is over: what was held back of the last one is told."""
        with self._adding:
            missing = self._count - MOST - len(self._last)
            if missing > 0:
                self._told(Printed(f"… left out: {counted(missing, 'line')}"))
            for printed in self._last:
                self._pass_on(printed)
            self._last.clear()
            self._count = 0

    def _pass_on(self, printed: Printed) -> None:
        text = self._shown(printed.text)
        self.kept.append(text)
        self._told(Printed(text, printed.exact))

    def _shown(self, line: str) -> str:
        """Escape sequences are taken out first, and a secret is hidden before a cut could leave a part of it."""
        text = self.masked(Text.from_ansi(line[:LONGEST_READ].replace("\n", " ")).plain)
        left = len(text) - LONGEST + max(0, len(line) - LONGEST_READ)
        return f"{text[:LONGEST]}… ({counted(left, 'more character')})" if len(text) > LONGEST else text


def record_text(line: str) -> str:
    """The text of a record of the SDK's logger, which writes JSON; any other line as it is."""
    if not line.startswith("{") or len(line) > LONGEST_READ:
        return line
    try:
        match json.loads(line):
            case {"event": "log", "data": {"message": str(message), **record}}:
                level = str(record.get("level") or "INFO")
                return message if level == "INFO" else f"{level}: {message}"
    except (ValueError, RecursionError):
        return line  # printed by the plugin itself
    return line

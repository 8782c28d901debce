"""What a command printed, in a file beside its trace. In: the file. Out: text for a page."""

from pathlib import Path

from rich.text import Text

from devhost.terminal.tables.text import printable
from devhost.text.user_file import open_file

MOST_BYTES = 40_000
"""A plugin can print without end."""


def last_printed(file: Path) -> str:
    """The last `MOST_BYTES`, without colours and control characters; empty if there is no file to read."""
    try:
        with open_file(file) as output:
            output.seek(max(0, output.seek(0, 2) - MOST_BYTES))
            last = output.read()
    except OSError:
        return ""
    return printable(Text.from_ansi(last.decode(errors="replace")).plain).strip()

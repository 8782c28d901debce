"""The questions of a conversation, one a line: typed at a prompt, or from a pipe. Blank lines are no questions.

At the prompt Ctrl-C discards the line and Ctrl-D ends; lines can be edited where Python has readline.
"""

import contextlib
import io
import sys
from collections.abc import Iterator

from devhost.terminal_tables import printable

PROMPT = "you> "


def read_questions() -> Iterator[str]:
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    return _typed() if sys.stdin.isatty() else _piped()


def _typed() -> Iterator[str]:
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401, PLC0415 - its import is what teaches input() to edit
    while True:
        try:
            if question := input(PROMPT).strip():
                yield question  # inside the try: a Ctrl-C that comes just too late for a turn is one at the prompt
        except KeyboardInterrupt:
            sys.stdout.write("\n")
        except EOFError:
            sys.stdout.write("\n")
            return


def _piped() -> Iterator[str]:
    """Shown as they come, so that what is printed reads as a conversation all the same."""
    for line in sys.stdin:
        if question := line.strip():
            sys.stdout.write(f"{PROMPT}{printable(question)}\n")
            sys.stdout.flush()
            yield question

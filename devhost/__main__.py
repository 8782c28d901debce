"""`devhost`, and `python -m devhost`."""

import sys
from typing import Never

from devhost.cli.commands import main
from devhost.terminal.signals.ending import end_with_signals


def start() -> Never:
    """Runs the command of the process's arguments, and exits with its code."""
    end_with_signals()
    sys.exit(main())


if __name__ == "__main__":
    start()

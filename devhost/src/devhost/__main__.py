"""The entry point of `devhost` and `python -m devhost`."""

import gc
import os
import signal
import sys
import threading
from types import FrameType
from typing import TYPE_CHECKING, Never

from devhost.cli.commands import main

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

SOON_SECONDS = 0.01


def end_with_signals() -> None:
    """Turn SIGTERM and SIGHUP into exceptions, as Python does with SIGINT, so that devhost stops its plugins.

    Python passes an exception from a finalizer or a weak reference's callback to `sys.unraisablehook`, and then drops
    it. Threads and queues run such callbacks at the end of every turn. The hook raises the exception again shortly
    afterwards.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    sys.unraisablehook = _end_soon


def _end(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)


def _end_soon(dropped: "UnraisableHookArgs", /) -> None:
    ending = dropped.exc_value
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or not isinstance(ending, SystemExit | KeyboardInterrupt):
        sys.__unraisablehook__(dropped)
        return

    def end(*_: object) -> None:
        raise ending

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, SOON_SECONDS)


def start() -> Never:
    """Run the command in the process's arguments, and exit with its code."""
    gc.set_threshold(100_000)  # imports create no garbage, and searching for it takes a tenth of the startup time
    # pydantic looks for its own plugins, such as logfire's, in all packages. That takes 20 ms here, and 20 ms in each
    # Dify plugin that inherits the variable. Other values, such as "no", do not disable them.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    end_with_signals()
    code = main()
    gc.freeze()  # the process is about to end
    sys.exit(code)


if __name__ == "__main__":
    start()

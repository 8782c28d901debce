"""`devhost`, and `python -m devhost`."""

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
    """Turns SIGTERM and SIGHUP into exceptions, as Python does SIGINT: devhost stops its plugins before it ends.

    Python drops an exception that a finalizer or the callback of a weak reference raises, after it calls
    `sys.unraisablehook`. Threads and queues have such callbacks at the end of every turn, so there the exception is
    raised once more as soon as they are over.
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
    """Runs the command of the process's arguments, and exits with its code."""
    gc.set_threshold(100_000)  # imports make many objects and no garbage: to look for it takes a tenth of the start
    # pydantic looks for its own plugins, such as logfire's, in all packages. That takes 20 ms here, and in each Dify
    # plugin that inherits the variable. Another value, such as "no", leaves them on.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    end_with_signals()
    code = main()
    gc.freeze()  # nothing has to be collected before the process ends
    sys.exit(code)


if __name__ == "__main__":
    start()

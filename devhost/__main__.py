"""`python -m devhost`."""

import signal
import sys

from devhost.cli import main

# An exception, unlike a signal's default, lets the plugins be stopped on the way out.
for ending in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(ending, lambda number, _: sys.exit(128 + number))
sys.exit(main())

"""`python -m devhost`."""

import sys

from devhost.cli import main
from devhost.ending import end_with_signals

end_with_signals()
sys.exit(main())

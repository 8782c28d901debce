"""`python -m devhost`."""

import sys

from devhost.cli.commands import main
from devhost.cli.ending import end_with_signals

end_with_signals()
sys.exit(main())

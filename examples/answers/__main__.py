"""`python -m examples.answers`: builds the index, asks, and shows what was answered."""

import sys
from pathlib import Path

# At the end: an example has a `main` and a `provider`, as the repository has.
sys.path.append(str(Path(__file__).resolve().parent))
sys.path.append(str(Path(__file__).resolve().parents[1] / "shared"))

from answers_cli.commands import main

if __name__ == "__main__":
    sys.exit(main())

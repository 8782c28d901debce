"""`python -m examples.order_entry chat`, `audit` and `order-system`, from the root of the repository."""

import sys
from pathlib import Path

# At the end: an example has a `main` and a `provider`, as the repository has.
sys.path += [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1] / "shared")]

from order_desk.commands import commands

if __name__ == "__main__":
    commands(prog_name="python -m examples.order_entry")

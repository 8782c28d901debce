"""`python -m examples.order_entry chat`, `audit` and `order-system`, from the root of the repository."""

import sys
from pathlib import Path


def main() -> None:
    # At the end: the example has a `main` and a `provider`, as the repository has.
    here = Path(__file__).resolve().parent
    sys.path += [str(here), str(here.parent / "shared")]
    from order_desk.commands import commands  # noqa: PLC0415 - importable only now

    commands(prog_name="python -m examples.order_entry")


if __name__ == "__main__":
    main()

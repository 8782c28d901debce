"""`python -m examples.runner NAME`: one example, in a process that knows its modules; the rows as JSON."""

import sys

from pydantic import TypeAdapter

from examples.runner.rows import Row
from examples.runner.scenarios import EXAMPLES


def main(example: str) -> None:
    # At the end: an example has a `main` and a `provider`, as we do.
    sys.path += [str(EXAMPLES / example), str(EXAMPLES / "shared")]
    from examples.runner.playing import played_rows  # noqa: PLC0415 - imports the example's modules

    rows = list(played_rows(example))
    sys.stdout.buffer.write(TypeAdapter(list[Row]).dump_json(rows))


if __name__ == "__main__":
    main(sys.argv[1])

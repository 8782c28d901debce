"""Plays many conversations of an attacker: ``python -m tests.attack [NUMBER [FIRST SEED]]``; ``make fuzz``.

Prints the seed of each conversation in which something was done that the user did not consent to, and ends with 1 if
there is one. Such a seed goes into ``FOUND`` of test_attack.py, with the repair.
"""

import sys
import time
import traceback

import dify_plugin  # noqa: F401 - patches threads and sockets, and has to come first

from tests.attack.conversations import Conversation
from tests.support.local_http import SignedFiles, served


def main(number: int = 20_000, first: int = 0) -> int:
    started = time.monotonic()
    found = done = handed_on = 0
    with served(SignedFiles) as address:
        for seed in range(first, first + number):
            conversation = Conversation(seed, address)
            try:
                conversation.play()
            except Exception:  # noqa: BLE001 - any defect is a find
                found += 1
                print(f"seed {seed}:", traceback.format_exc(limit=-2), flush=True)  # noqa: T201
            done += conversation.done
            handed_on += conversation.handed_on
    seconds = time.monotonic() - started
    acts = f"{done:,} approved calls ({handed_on:,} with a result by reference)"
    print(f"{number:,} conversations from seed {first:,}, {acts}, {found} found, {seconds:.0f} s")  # noqa: T201
    if found:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))

"""Texts for a line of a terminal: printable, on one line, cut."""

import json

from devhost.text.counted import counted

LONGEST_VALUE, BEGINNING = 200, 40
"""Characters of a text variable on its one line; of a longer one, such as a state, its beginning and its length."""
_JOINERS = "\u200c\u200d\u2060"
"""Persian and emoji need the first two; the third is in tags that an answer quotes."""


def printable(value: object) -> str:
    """Without control characters: what comes from the wire must not move the cursor or reverse the line."""
    kept = f"\n\t{_JOINERS}"
    return "".join(letter if letter.isprintable() or letter in kept else "�" for letter in str(value))


def preview(value: object) -> str:
    """JSON on one line."""
    return " ".join(json.dumps(value, ensure_ascii=False, default=str).split())


def on_a_line(text: str) -> str:
    return text if len(text) <= LONGEST_VALUE else f"{text[:BEGINNING]}… ({len(text):,} characters)"


def clipped(text: str, longest: int) -> str:
    left = len(text) - longest
    return f"{text[:longest]}… ({counted(left, 'more character')})" if left > 0 else text

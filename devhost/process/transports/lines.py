"""Splits what a plugin prints into lines, in bounded memory.

In: bytes as they come, or a pipe. Out: texts without line ends; blank lines are left out. Of a line that is too long
comes the beginning and, at its end, how much was left out. A line that is not ended is passed on after a short pause.
"""

import codecs
import os
import re
import select
from collections.abc import Callable, Iterator
from typing import IO

from devhost.text.counted import counted

LONGEST = 16_000
"""Characters of one line that are passed on."""
PAUSE_SECONDS = 0.3
_ENDS = re.compile(r"[\r\n]+")
"""A progress bar ends each of its states with a carriage return."""


class Lines:
    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._begun = ""
        self._left_out = 0

    @property
    def is_open(self) -> bool:
        """Whether a line has begun and is not passed on."""
        return bool(self._begun)

    def feed(self, data: bytes, *, final: bool = False) -> Iterator[str]:
        *ended, open_end = _ENDS.split(self._decode(data, final))
        for piece in ended:
            yield from self._more(piece)
            yield from self._end()
        yield from self._more(open_end)
        if final:
            yield from self._end()

    def pause(self) -> Iterator[str]:
        """Nothing has come for a while: what there is of the open line; its rest is a line of its own."""
        begun, self._begun = self._begun, ""
        if begun.strip():
            yield begun

    def _more(self, piece: str) -> Iterator[str]:
        if self._left_out:
            self._left_out += len(piece)
            return
        self._begun += piece
        if len(self._begun) > LONGEST:
            yield self._begun[:LONGEST]
            self._left_out, self._begun = len(self._begun) - LONGEST, ""

    def _end(self) -> Iterator[str]:
        if self._left_out:
            yield left_out(self._left_out)
            self._left_out = 0
        yield from self.pause()


def left_out(characters: int) -> str:
    return f"… left out: {counted(characters, 'more character')} of this line"


def read_lines(pipe: IO[bytes], printed: Callable[[str], None], came: Callable[[], None] = lambda: None) -> None:
    """Reads to the end of the pipe; `came` is called for all that comes, also in the middle of a line."""
    lines, poll = Lines(), select.poll()
    poll.register(pipe, select.POLLIN)
    while True:
        if not poll.poll(PAUSE_SECONDS * 1000 if lines.is_open else None):
            for line in lines.pause():
                printed(line)
            continue
        data = os.read(pipe.fileno(), 65_536)
        if data:
            came()
        for line in lines.feed(data, final=not data):
            printed(line)
        if not data:
            return

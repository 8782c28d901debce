"""Markdown that may reach over the paragraph that it begins in: HTML, code fences, blocks of mathematics.

In: text in pieces. Out: what of it can stand before a question that the user must see whole. If such a block stays
open, a page hides what follows, or shows it as something else.
"""

import re

from internal.thoughts.think_tags import WORD_JOINER

_OPENS = re.compile(r"(?P<whole><|```|~~~|\$\$|\\\[)|(?:`{1,2}|~{1,2}|\$|\\)\Z")
r"""Dify's page writes ``$$`` for ``\[``. At the end stands what may become one of the others with the next piece."""
_WITHIN = re.compile(r"(?<=<)|(?<=``)(?=`)|(?<=~~)(?=~)|(?<=\$)(?=\$)|(?<=\\)(?=\[)")
"""Where a character within each of them takes its meaning away."""
_LONGEST_BEGINNING = 2


class OpenEnds:
    """Finds where a text first may open something; what comes after that is not looked at."""

    def __init__(self) -> None:
        self.is_found = False

    def harmless(self, text: str) -> int:
        """The length of what can be shown of a text, without the white space before what has to wait.

        The next text has to begin with what was not shown of this one.
        """
        if self.is_found:
            return 0
        found = _OPENS.search(text)
        if found is None:
            return len(text)
        self.is_found = found["whole"] is not None
        return len(text[: found.start()].rstrip())


class Defused:
    """Writes invisible word joiners into a text that comes in pieces, so that nothing in it opens a block."""

    def __init__(self) -> None:
        self._end = ""

    def feed(self, text: str) -> str:
        before, whole = self._end, self._end + text
        self._end = whole[-_LONGEST_BEGINNING:]
        return _defused(whole)[len(_defused(before)) :]


def _defused(text: str) -> str:
    return _WITHIN.sub(WORD_JOINER, text)

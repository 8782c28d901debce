"""Drops the white space around a text.

In: a text in pieces. Out: the same pieces; white space comes with what follows it.
"""


class Trimmer:
    """Drops white space at the beginning and end of a text that comes in pieces."""

    def __init__(self) -> None:
        self._held: list[str] = []
        self._has_begun = False

    def feed(self, text: str) -> str:
        kept = text.rstrip()
        if not kept:
            if self._has_begun:
                self._held.append(text)
            return ""
        held, self._held = self._held, [text[len(kept) :]]
        if not self._has_begun:
            self._has_begun = True
            return kept.lstrip()
        return "".join([*held, kept])

    @property
    def held(self) -> str:
        """The white space at the end so far."""
        return "".join(self._held)

"""Variables that a tool sets: its result, if it sends nothing else.

In: variable messages, streamed ones in pieces. Out: one JSON object of all of them.
"""

import json
from io import StringIO

from internal.text.fairness import in_turns
from internal.text.kept_text import MAX_KEPT_LENGTH

_MAX_NAME_LENGTH = 200
_OVERHEAD = 100
"""Characters that a variable counts for besides its name and value."""


class ToolVariables:
    """The last value of each variable, as far as they are not too long together."""

    def __init__(self) -> None:
        self.left_out = False
        """Whether a value was too long to be kept."""
        self._values: dict[str, StringIO] = {}
        self._streamed: set[str] = set()
        """Variables whose value is a text as it is; the others' are JSON."""
        self._left = MAX_KEPT_LENGTH

    def take(self, name: object, value: object, *, stream: bool) -> None:
        """Set a variable; pieces of a streamed text follow each other, as in Dify."""
        key = str(name)[:_MAX_NAME_LENGTH]
        is_piece = stream and isinstance(value, str)
        if not (is_piece and key in self._streamed):
            self._forget(key)
        text = str(value) if is_piece else _written(value)
        cost = len(text) + (0 if key in self._values else len(key) + _OVERHEAD)
        if cost > self._left:
            self.left_out = True
            return
        self._left -= cost
        self._values.setdefault(key, StringIO()).write(text)
        if is_piece:
            self._streamed.add(key)

    def _forget(self, key: str) -> None:
        old = self._values.pop(key, None)
        self._streamed.discard(key)
        if old is not None:
            self._left += old.tell() + len(key) + _OVERHEAD

    def clear(self) -> None:
        """Drop all variables: something else is the result."""
        self._values.clear()
        self._streamed.clear()
        self._left = MAX_KEPT_LENGTH

    def text(self) -> str:
        """All variables as one JSON object, "" without any."""
        values = (
            f"{_written(key)}: {_written(value.getvalue()) if key in self._streamed else value.getvalue()}"
            for key, value in in_turns(self._values.items())
        )
        return f"{{{', '.join(values)}}}" if self._values else ""


def _written(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)

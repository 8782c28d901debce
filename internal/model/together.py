"""What the user sees at once, as few texts of bounded size.

In: the events that one chunk of a model brings, in order. Out: the same, with neighbouring texts of one kind joined and
put together.
"""

from collections.abc import Iterable, Iterator

from internal.report.events import AnswerBreak, AnswerText, Event, Shown, ShownTogether, ThoughtText

MAX_BYTES = 250_000
"""Together, in UTF-8; a little less than fits into one message."""
_MAX_PIECE_LENGTH = 16 * 1024
"""Characters of a piece of a longer text."""
MAX_PARTS = 500


def together(events: Iterable[Event]) -> Iterator[Event]:
    """Nothing is kept beyond the last event, for which there is no wait."""
    batch = _Batch()
    for event in events:
        if isinstance(event, AnswerText | AnswerBreak | ThoughtText):
            for part in _parts(event):
                if batch.is_full(part):
                    yield from batch.take()
                batch.add(part)
        else:
            yield from batch.take()
            yield event
    yield from batch.take()


class _Batch:
    """Texts that wait to be put together; ``stretch`` is the last of them, still in pieces."""

    def __init__(self) -> None:
        self._parts: list[Shown] = []
        self._kind: type[AnswerText | ThoughtText] = AnswerText
        self._stretch: list[str] = []
        self._size = 0

    def is_full(self, part: Shown) -> bool:
        return len(self._parts) >= MAX_PARTS or (self._size > 0 and self._size + _size(part) > MAX_BYTES)

    def add(self, part: Shown) -> None:
        if not isinstance(part, self._kind):
            self._end_stretch()
        if isinstance(part, AnswerBreak):
            self._parts.append(part)
        else:
            self._kind = type(part)
            self._stretch.append(part.text)
            self._size += _size(part)

    def take(self) -> Iterator[ShownTogether]:
        self._end_stretch()
        parts, self._parts, self._size = tuple(self._parts), [], 0
        if parts:
            yield ShownTogether(parts)

    def _end_stretch(self) -> None:
        if self._stretch:
            self._parts.append(self._kind("".join(self._stretch)))
            self._stretch = []


def _parts(shown: Shown) -> Iterator[Shown]:
    if isinstance(shown, AnswerBreak) or len(shown.text) <= _MAX_PIECE_LENGTH:
        yield shown
        return
    for start in range(0, len(shown.text), _MAX_PIECE_LENGTH):
        yield type(shown)(shown.text[start : start + _MAX_PIECE_LENGTH])


def _size(part: Shown) -> int:
    return 0 if isinstance(part, AnswerBreak) else len(part.text.encode(errors="replace"))

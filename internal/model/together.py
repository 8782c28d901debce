"""Joins what the user sees at once into few events of bounded size.

In: the events that some chunks of a model bring, in order. Out: the same, with texts and thoughts that follow each
other in one ShownTogether.
"""

from collections.abc import Iterable, Iterator

from internal.report.events import AnswerBreak, AnswerText, Event, Shown, ShownTogether, ThoughtText

MAX_BYTES = 200 * 1024
"""In UTF-8, after which an event is complete. With the piece that reaches this it still fits into one message."""
_MAX_PIECE_LENGTH = 12 * 1024
"""Characters of a piece of a longer text."""
_MIN_SIZE = 400
"""Bytes that a part counts for at least, since each costs time however short it is."""


def together(events: Iterable[Event]) -> Iterator[Event]:
    """Nothing is held back beyond the last event."""
    parts, size = list[Shown](), 0
    for event in events:
        if isinstance(event, AnswerText | AnswerBreak | ThoughtText):
            for part in _pieces(event):
                parts.append(part)
                size += _size(part)
                if size >= MAX_BYTES:
                    yield ShownTogether(tuple(parts))
                    parts, size = [], 0
        else:
            if parts:
                yield ShownTogether(tuple(parts))
                parts, size = [], 0
            yield event
    if parts:
        yield ShownTogether(tuple(parts))


def _pieces(shown: Shown) -> Iterator[Shown]:
    if isinstance(shown, AnswerBreak) or len(shown.text) <= _MAX_PIECE_LENGTH:
        yield shown
        return
    for start in range(0, len(shown.text), _MAX_PIECE_LENGTH):
        yield type(shown)(shown.text[start : start + _MAX_PIECE_LENGTH])


def _size(part: Shown) -> int:
    return _MIN_SIZE if isinstance(part, AnswerBreak) else max(_MIN_SIZE, len(part.text.encode()))

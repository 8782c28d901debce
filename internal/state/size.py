"""What yields when a state would be too large.

In: a state. Out: its JSON, compressed, as much of it as has room. What yields, in this order, and in each the oldest
first: context; results in older turns than the last three, down to their head and tail; whole older turns; results in
the last three turns, as above; whole turns but the last; sources; at last the results of the last turn, its rounds and
long texts. Calls that wait never yield. What subtasks found counts as results.

Turns and sources come back, the newest first, where what yielded after them has made room for them: a long result of
today costs its own length, and not the whole conversation before it.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from internal.state.layout import EntryParts, Layout, TextPart, lay_out, written_entry
from internal.state.pieces import Draft
from internal.state.records import CallRecord, RoundRecord, State, UserRecord
from internal.text.fairness import in_turns
from internal.text.kept_text import cut_to_size
from prompt import template

MAX_WAITING = 64 * 1024
"""Bytes of JSON that the waiting calls of a state may have together, so that they fit whatever they say."""
_RECENT_TURNS = 3
"""The last turns, whose results stay whole for longer."""
_KEPT = 1_000
"""Characters of a result."""
_LONG, _SHORT = 20_000, 100
"""Characters of each text in the last turn."""


type _Parts = list[tuple[int, bytes]]
"""What stands at which place; an empty part is left out."""


@dataclass(frozen=True)
class _Change:
    parts: _Parts
    can_return: bool = False
    """Whether it is undone if there is room in the end."""


def size_of_waiting(call: CallRecord) -> int:
    """The bytes of JSON that a waiting call takes in a state at most; of all that wait, ``MAX_WAITING`` fit."""
    return len(json.dumps(call.model_dump(exclude_defaults=True), ensure_ascii=False).encode(errors="replace"))


def fitted(state: State, max_packed: int) -> bytes:
    """The packed JSON of a state in so many bytes.

    Raises:
        ValueError: the calls that wait do not fit; they have more than ``MAX_WAITING`` bytes.
    """
    layout = lay_out(state)
    draft = Draft(layout.parts, max_packed)
    changes, left_out = in_turns(_changes(layout)), list[_Parts]()
    while not draft.fits():
        change = next(changes, None)
        if change is None:
            raise ValueError("more waits than a state can hold")
        before = draft.put(change.parts)
        if change.can_return:
            left_out.append(before)
    _bring_back(left_out[::-1], draft)
    return draft.packed()


def _bring_back(left_out: Sequence[_Parts], draft: Draft) -> None:
    """Put back as many as fit of what was left out; more and more at once, then fewer and fewer."""
    count, step, all_fitted = 0, 1, True
    while step and count < len(left_out):
        batch = left_out[count : count + step]
        before = draft.put([part for parts in batch for part in parts])
        if draft.fits():
            count += len(batch)
        else:
            draft.put(before)
            all_fitted = False
        step = step * 2 if all_fitted else step // 2


def _changes(layout: Layout) -> Iterator[_Change]:
    """What yields, step by step."""
    turns = _turns(layout.entries)
    older, recent = turns[:-_RECENT_TURNS], turns[-_RECENT_TURNS:]
    subtasks = [subtask.entries for subtask in layout.subtasks]
    contexts = (entry.context for turn in [*turns, *subtasks] for entry in turn if entry.context)
    yield from (_Change([(part.index, b"")]) for part in contexts)
    yield from _cut((part for turn in older for part in _results(turn)), _KEPT)
    yield from (_Change(_left_out(turn), can_return=True) for turn in older)
    yield from _cut((part for turn in [*recent, *subtasks] for part in _results(turn)), _KEPT)
    yield from (_Change(_left_out(turn), can_return=True) for turn in recent[:-1])
    yield from (_Change([(index, b"")], can_return=True) for index in layout.sources)
    yield from _changes_of_the_rest(layout, [*recent[-1:], *subtasks])


def _changes_of_the_rest(layout: Layout, conversations: Sequence[Sequence[EntryParts]]) -> Iterator[_Change]:
    """What the last turn, and the subtasks of a plan that waits, can do without."""
    ends = [end for entries in conversations for end in (*entries[:1], *entries[1:][-1:])]
    of_subtasks = [part for subtask in layout.subtasks for part in subtask.texts]
    texts = [part for entries in conversations for entry in entries for part in entry.texts]
    yield from _cut([*texts, *of_subtasks], _LONG)
    for part in (part for entries in conversations for part in _results(entries)):
        if len(part.text) > len(template.ELIDED_TOOL_RESULT):
            yield _Change([(part.index, part.saying(template.ELIDED_TOOL_RESULT))])
    yield from (_Change(_left_out([entry])) for entries in conversations for entry in entries[1:-1])
    texts = [part for entry in ends for part in entry.texts]
    yield from _cut([*texts, *of_subtasks], _KEPT)
    yield from _cut([*texts, *of_subtasks], _SHORT)
    yield from (_with_the_smallest_round(end, end.entry) for end in ends if isinstance(end.entry, RoundRecord))
    yield from (_Change([(index, b"") for index in end.files]) for end in ends if end.files)
    yield from _cut([subtask.name for subtask in layout.subtasks], _SHORT)


def _turns(entries: Sequence[EntryParts]) -> list[list[EntryParts]]:
    """A turn begins with what the user said."""
    turns: list[list[EntryParts]] = []
    for parts in entries:
        if not turns or isinstance(parts.entry, UserRecord):
            turns.append([])
        turns[-1].append(parts)
    return turns


def _results(entries: Iterable[EntryParts]) -> Iterator[TextPart]:
    return (part for entry in entries for part in entry.results)


def _cut(parts: Iterable[TextPart], limit: int) -> Iterator[_Change]:
    """Keep head and tail of long texts."""
    long = (part for part in parts if len(part.text) > limit)
    return (_Change([(part.index, part.saying(_cut_text(part.text, limit)))]) for part in long)


def _left_out(entries: Iterable[EntryParts]) -> _Parts:
    return [(index, b"") for entry in entries for index in range(entry.start, entry.stop)]


def _with_the_smallest_round(parts: EntryParts, entry: RoundRecord) -> _Change:
    """Keep of a round only the calls that wait; where none does, one call without its arguments."""
    calls = entry.waiting or tuple(map(_smallest, entry.calls[-1:]))
    written = written_entry(RoundRecord(said=_cut_text(entry.said, _SHORT), calls=calls))
    return _Change([*_left_out([parts]), (parts.start, written + parts.end)])


def _smallest(call: CallRecord) -> CallRecord:
    names = {name: _cut_text(getattr(call, name), _SHORT) for name in ("id", "provider", "tool")}
    return call.model_copy(update={**names, "arguments": "{}", "result": template.ELIDED_TOOL_RESULT})


def _cut_text(text: str, limit: int) -> str:
    return cut_to_size(text, limit, note=template.CHARACTERS_NOT_KEPT.format)

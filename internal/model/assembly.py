"""Tool calls put together from what a stream brings: fragments, growing snapshots, duplicates, missing or equal ids.

In: the tool-call entries of each chunk, in order. Out: whole calls, in the order in which they began. One rule serves
all providers (docs/model-facts.md, "How tool calls stream"), and it is applied once, when the stream has ended. What is
kept and looked at is bounded by MAX_ARGUMENTS_LENGTH, however the stream cuts it up.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from internal.flow import SdkToolCall
from internal.report.tool_calls import ToolCall
from internal.text.wellformed import without_escaped_nul
from internal.tooling import MAX_ARGUMENTS_LENGTH

_MAX_KEPT = MAX_ARGUMENTS_LENGTH + 1
"""Characters; one more than are accepted, so that a longer text is still recognised as too long."""


@dataclass
class _Fragments:
    """The pieces of one call's arguments.

    They are taken for snapshots as long as each is a prefix of the next; then they are fragments.
    """

    _latest: str = ""
    """The longest snapshot; the others are its beginnings."""
    _lengths: list[int] = field(default_factory=list)
    """Of all snapshots, until their join is longer than arguments may be."""
    _pieces: list[str] | None = None
    """Set once the pieces are known to be fragments."""
    _size: int = 0
    """Characters of the join."""

    def take(self, piece: str) -> None:
        if self._pieces is None and len(self._latest) >= _MAX_KEPT:
            return  # too long, whatever comes
        if self._pieces is None and piece.startswith(self._latest):
            self._latest = piece[:_MAX_KEPT]
            if self._size < _MAX_KEPT:
                self._lengths.append(len(piece))
        else:
            self._pieces = self._pieces if self._pieces is not None else list(self._snapshots())
            if self._size < _MAX_KEPT:
                self._pieces.append(piece[:_MAX_KEPT])
        self._size += len(piece)

    def _snapshots(self) -> Iterator[str]:
        return (self._latest[:length] for length in self._lengths)

    def readings(self) -> Iterator[str]:
        """What the arguments may be, the likeliest first.

        The last piece alone if the pieces are snapshots, else their join. A key such as ``{`` can make the pieces of
        one object look like snapshots: the join of those is the second reading.
        """
        if self._size == 0:
            yield "{}"
        elif self._pieces is not None:
            yield "".join(self._pieces)[:_MAX_KEPT]
        else:
            yield self._latest
            if len(self._lengths) > 1 and self._size <= MAX_ARGUMENTS_LENGTH:
                yield "".join(self._snapshots())


@dataclass
class _Draft:
    """A call that is still coming in."""

    id: str
    name: str = ""
    arguments: _Fragments = field(default_factory=_Fragments)

    def call(self, fallback_id: str) -> ToolCall:
        """The whole call: with the first reading that is a JSON object, or the likeliest where none is."""
        call_id = self.id or fallback_id
        texts = ((text, without_escaped_nul(text)) for text in self.arguments.readings())
        readings = (ToolCall(call_id, self.name, kept, had_nul=kept != text) for text, kept in texts)
        likeliest = next(readings)
        return next((call for call in (likeliest, *readings) if call.parsed.ok), likeliest)


class CallAssembler:
    """Collects the tool calls of one turn."""

    def __init__(self, fallback_id: str) -> None:
        """A call without an id gets ``{fallback_id}_{position}``."""
        self._fallback_id = fallback_id
        self._drafts: list[_Draft] = []
        self._by_id: dict[str, list[_Draft]] = {}
        self._calls: tuple[ToolCall, ...] | None = None

    def take(self, entries: Iterable[SdkToolCall]) -> None:
        """Take the entries of one chunk; entries of one chunk with the same id are different calls."""
        self._calls = None
        seen = Counter[str]()
        for entry in entries:
            draft = self._draft_for(entry, seen[entry.id])
            seen[entry.id] += 1
            draft.name = draft.name or entry.function.name
            if entry.function.arguments:
                draft.arguments.take(entry.function.arguments)

    def _draft_for(self, entry: SdkToolCall, before: int) -> _Draft:
        """The draft that an entry continues, or a new one; ``before`` entries of the same chunk have the same id.

        It continues a draft of its id, or, without id and name, the last draft.
        """
        known = self._by_id.setdefault(entry.id, []) if entry.id else []
        if before < len(known):
            return known[before]
        if not entry.id and not entry.function.name and self._drafts:
            return self._drafts[-1]
        draft = _Draft(entry.id)
        self._drafts.append(draft)
        known.append(draft)
        return draft

    @property
    def has_begun(self) -> bool:
        """Whether any entry has come."""
        return bool(self._drafts)

    def calls(self) -> tuple[ToolCall, ...]:
        """The whole calls; they are put together and parsed once."""
        if self._calls is None:
            self._calls = tuple(
                draft.call(f"{self._fallback_id}_{position}") for position, draft in enumerate(self._drafts, start=1)
            )
        return self._calls

"""Tool calls put together from what a stream brings: fragments, growing snapshots, duplicates, missing or equal ids.

In: the tool-call entries of each chunk, in order. Out: whole calls, in the order in which they began. One rule serves
all providers (docs/model-facts.md, "How tool calls stream"), and it is applied once, when the stream has ended. What is
kept and looked at is bounded by MAX_ARGUMENTS_LENGTH, however the stream cuts it up.
"""

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
        texts = map(without_escaped_nul, self.arguments.readings())
        readings = (ToolCall(call_id, self.name, text) for text in texts)
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
        """Take the entries of one chunk; each of them is a call of its own, even where ids are equal."""
        self._calls = None
        claims = _Claims(self._by_id)
        for entry in entries:
            draft = self._draft_for(entry, claims)
            draft.name = draft.name or entry.function.name
            if entry.function.arguments:
                draft.arguments.take(entry.function.arguments)

    def _draft_for(self, entry: SdkToolCall, claims: "_Claims") -> _Draft:
        """The draft that an entry continues, or a new one: same id, or neither id nor name and then the last."""
        known: _Draft | None = None
        if entry.id:
            known = claims.next_of(entry.id)
        elif not entry.function.name and self._drafts:
            known = self._drafts[-1]
        if known is None:
            known = _Draft(entry.id)
            self._drafts.append(known)
            if entry.id:
                self._by_id.setdefault(entry.id, []).append(known)
        claims.add(known)
        return known

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


class _Claims:
    """Which drafts the entries of one chunk have continued already."""

    def __init__(self, by_id: dict[str, list[_Draft]]) -> None:
        self._by_id = by_id
        self._claimed: set[int] = set()
        self._next: dict[str, int] = {}

    def next_of(self, call_id: str) -> _Draft | None:
        """The first draft of that id that no entry of the chunk has continued."""
        drafts, position = self._by_id.get(call_id, []), self._next.get(call_id, 0)
        while position < len(drafts) and id(drafts[position]) in self._claimed:
            position += 1
        self._next[call_id] = position
        return drafts[position] if position < len(drafts) else None

    def add(self, draft: _Draft) -> None:
        self._claimed.add(id(draft))

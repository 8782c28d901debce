"""The tool calls that a model wrote, put together from the chunks of its answer.

In: a model call. Out: a `WrittenCall` each. A call comes whole, in fragments, or as snapshots that grow; its later
pieces repeat its id, or have neither id nor name. Entries of one chunk with the same id are different calls.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from devhost.trace.calls import Call


@dataclass(frozen=True)
class WrittenCall:
    id: str
    name: str
    arguments: str
    """As the model wrote them: JSON, or what should have been JSON."""

    @property
    def values(self) -> object:
        """The arguments as JSON, or the text where it is not JSON."""
        try:
            return json.loads(self.arguments)
        except (ValueError, RecursionError):
            return self.arguments


@dataclass
class _Draft:
    id: str
    name: str = ""
    pieces: list[str] = field(default_factory=list)

    def written(self) -> WrittenCall:
        """Pieces are snapshots if each begins with the one before, unless only their join is JSON."""
        joined = WrittenCall(self.id, self.name, "".join(self.pieces))
        if len(self.pieces) < 2 or not all(after.startswith(before) for before, after in pairwise(self.pieces)):  # noqa: PLR2004 - two are needed
            return joined
        latest = WrittenCall(self.id, self.name, self.pieces[-1])
        return joined if isinstance(latest.values, str) and not isinstance(joined.values, str) else latest


def written_calls(call: Call) -> list[WrittenCall]:
    """In the order in which they began; empty for a call of a tool."""
    drafts: list[_Draft] = []
    for piece in call.pieces:
        seen = Counter[str]()
        for entry in _entries(piece.data):
            call_id, function = str(entry.get("id") or ""), entry.get("function")
            said = function if isinstance(function, dict) else {}
            draft = _draft(drafts, call_id, str(said.get("name") or ""), seen[call_id])
            seen[call_id] += 1
            if said.get("arguments"):
                draft.pieces.append(str(said["arguments"]))
    return [draft.written() for draft in drafts]


def _draft(drafts: list[_Draft], call_id: str, name: str, before: int) -> _Draft:
    """The call that an entry continues, or a new one; `before` entries of the same chunk have the same id."""
    known = [draft for draft in drafts if draft.id == call_id] if call_id else []
    if before < len(known):
        return known[before]
    if not call_id and not name and drafts:
        return drafts[-1]
    drafts.append(_Draft(call_id, name))
    return drafts[-1]


def _entries(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    match data:
        case {"delta": {"message": {"tool_calls": list(entries)}}}:
            yield from (entry for entry in entries if isinstance(entry, dict))

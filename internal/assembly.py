"""Tool calls put together from what a stream brings: fragments, growing snapshots, duplicates, missing or equal ids.

In: the tool-call entries of each chunk, in order. Out: whole calls, in the order in which they began. The rule is
provider-neutral (model-behaviour §2.5) and judged once, when the stream has ended.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from internal.flow import SdkToolCall
from internal.tooling import parse_tool_arguments
from internal.transcript import ToolCall
from internal.wellformed import wellformed


@dataclass
class _Draft:
    """A call that is still coming in."""

    id: str
    name: str = ""
    fragments: list[str] = field(default_factory=list)

    def arguments(self) -> str:
        """The last fragment alone if the fragments are snapshots, each a prefix of the next; else their join.

        A key such as ``{`` can make the pieces of one object look like snapshots; they are none if only the join
        is an object.
        """
        joined = "".join(self.fragments)
        if not joined:
            return "{}"
        last = self.fragments[-1]
        are_snapshots = all(later.startswith(earlier) for earlier, later in pairwise(self.fragments))
        if are_snapshots and (parse_tool_arguments(last).ok or not parse_tool_arguments(joined).ok):
            return last
        return joined


class CallAssembler:
    """Collects the tool calls of one turn."""

    def __init__(self) -> None:
        self._drafts: list[_Draft] = []

    def take(self, entries: Iterable[SdkToolCall]) -> None:
        """Take the entries of one chunk; each of them is a call of its own, even where ids are equal."""
        claimed: list[_Draft] = []
        for entry in entries:
            draft = self._draft_for(entry, claimed)
            claimed.append(draft)
            draft.name = draft.name or entry.function.name
            if entry.function.arguments:
                draft.fragments.append(entry.function.arguments)

    def _draft_for(self, entry: SdkToolCall, claimed: list[_Draft]) -> _Draft:
        """The draft that an entry continues, or a new one: same id, or neither id nor name and then the last."""
        if entry.id:
            free = (draft for draft in self._drafts if draft.id == entry.id and not _is_among(draft, claimed))
            known = next(free, None)
        elif not entry.function.name and self._drafts:
            known = self._drafts[-1]
        else:
            known = None
        if known is None:
            known = _Draft(entry.id)
            self._drafts.append(known)
        return known

    def calls(self, fallback_id: str) -> tuple[ToolCall, ...]:
        """The whole calls; one without an id gets ``{fallback_id}_{position}``."""
        return tuple(
            ToolCall(wellformed(draft.id) or f"{fallback_id}_{position}", wellformed(draft.name), draft.arguments())
            for position, draft in enumerate(self._drafts, start=1)
        )


def _is_among(draft: _Draft, drafts: Iterable[_Draft]) -> bool:
    return any(draft is other for other in drafts)

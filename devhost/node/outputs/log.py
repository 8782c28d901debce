"""The node's log entries: updated in place by id, nested by parent_id.

In: log messages in the order of their coming. Out: a list as Dify stores it, and a tree as its panel draws it.
"""

from dataclasses import dataclass, field

from devhost.protocol.wire import JsonObject

NODE_ID = "agent"
OPEN = "start"
"""The status of an entry that has begun and not ended."""
DEEPEST = 100
"""Levels of the tree. Dify has no limit, but no log for people has so many."""


@dataclass
class LogEntry:
    id: str
    parent_id: str | None
    label: str
    status: str
    error: str | None
    data: JsonObject
    metadata: JsonObject
    children: list["LogEntry"] = field(default_factory=list)

    def stored(self) -> JsonObject:
        """The entry as in `outputs.json`."""
        return {
            "id": self.id,
            "parent_id": self.parent_id,
            "error": self.error,
            "status": self.status,
            "data": self.data,
            "label": self.label,
            "metadata": self.metadata,
            "node_id": NODE_ID,
        }

    def tree(self) -> JsonObject:
        return {**self.stored(), "children": [child.tree() for child in self.children]}


class AgentLog:
    def __init__(self) -> None:
        self.entries: dict[str, LogEntry] = {}
        self.rows_with_provider = 0
        """How many messages named a provider, whose icon Dify then looks for."""

    def add(self, body: JsonObject) -> None:
        """A known id updates the entry in its place; the entry keeps its parent."""
        values = {
            "label": body["label"],
            "status": body["status"],
            "error": body.get("error"),
            "data": body["data"],
            "metadata": body.get("metadata") or {},
        }
        if values["metadata"].get("provider"):
            self.rows_with_provider += 1
        known = self.entries.get(body["id"])
        if known is None:
            self.entries[body["id"]] = LogEntry(id=body["id"], parent_id=body.get("parent_id"), **values)
        else:
            for name, value in values.items():
                setattr(known, name, value)

    def roots(self) -> list[LogEntry]:
        """The tree. Entries whose parent is missing and entries that form a circle are at the top.

        Below the deepest level, entries stand side by side, so that the depth of a tree is bounded.
        """
        for entry in self.entries.values():
            entry.children = []
        roots: list[LogEntry] = []
        for entry in self.entries.values():
            ancestors = self._ancestors(entry)
            if not ancestors or ancestors[-1] is entry:
                roots.append(entry)
            else:
                ancestors[max(0, len(ancestors) - DEEPEST)].children.append(entry)
        return roots

    def _ancestors(self, entry: LogEntry) -> list[LogEntry]:
        """From the parent up; the entry itself is the last of them if it is its own ancestor."""
        found: dict[str, LogEntry] = {}
        ancestor = self._parent(entry)
        while ancestor is not None and ancestor.id not in found:
            found[ancestor.id] = ancestor
            ancestor = None if ancestor is entry else self._parent(ancestor)
        return list(found.values())

    def _parent(self, entry: LogEntry) -> LogEntry | None:
        return self.entries.get(entry.parent_id or "")

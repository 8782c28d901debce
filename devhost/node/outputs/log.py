"""The node's log entries: updated in place by id, nested by parent_id.

In: log messages in the order of their coming. Out: a list as Dify stores it, and a tree as its panel draws it.
"""

from dataclasses import dataclass, field

from devhost.protocol.wire import JsonObject

NODE_ID = "agent"
OPEN = "start"
"""The status of an entry that has begun and not ended."""


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
        """The tree. Entries whose parent is missing and entries that form a circle are at the top."""
        for entry in self.entries.values():
            entry.children = []
        roots: list[LogEntry] = []
        for entry in self.entries.values():
            parent = self._parent(entry)
            (roots if parent is None or self._is_its_own_ancestor(entry) else parent.children).append(entry)
        return roots

    def _parent(self, entry: LogEntry) -> LogEntry | None:
        return self.entries.get(entry.parent_id or "")

    def _is_its_own_ancestor(self, entry: LogEntry) -> bool:
        passed: set[str] = set()
        ancestor = self._parent(entry)
        while ancestor is not None and ancestor.id not in passed:
            if ancestor is entry:
                return True
            passed.add(ancestor.id)
            ancestor = self._parent(ancestor)
        return False

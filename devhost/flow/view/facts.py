"""What is known of a turn before it begins, as plain values, so that a trace can hold them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from devhost.flow.document import FlowFile
from devhost.flow.surroundings import FlowTurn
from devhost.protocol.wire import JsonObject


@dataclass(frozen=True)
class FlowFacts:
    file: str
    name: str
    kind: str
    """`chatflow` or `workflow`."""
    nodes: int
    """How many the file has."""
    turn: int
    """In its conversation, from 1."""
    query: str
    inputs: JsonObject
    files: Sequence[str]
    """The names of those that go with the question."""

    @classmethod
    def of(cls, file: FlowFile, turn: FlowTurn) -> "FlowFacts":
        inputs = json.loads(json.dumps(dict(turn.inputs), default=str))
        name = file.name or file.path.stem
        names = [given.path.name for given in turn.files]
        return cls(str(file.path), name, file.kind, len(file.nodes), turn.dialogue_count, turn.query, inputs, names)

"""What the nodes of one turn share."""

from dataclasses import dataclass, field
from functools import cached_property

from devhost.flow.document import FlowFile
from devhost.flow.engine.files.service import FileService
from devhost.flow.engine.turn.ending import Ending
from devhost.flow.engine.turn.forms import Forms
from devhost.flow.engine.turn.mistakes import Mistakes
from devhost.flow.surroundings import FlowTurn, Surroundings
from devhost.models.backend import ModelDescription
from devhost.node.outputs.run import Run


@dataclass(frozen=True)
class Playing:
    file: FlowFile
    turn: FlowTurn
    around: Surroundings
    forms: Forms
    started: set[str] = field(default_factory=set)
    """Executions of nodes: after a pause, the engine begins that of the form once more."""
    runs: dict[str, tuple[Run, ModelDescription]] = field(default_factory=dict)
    """The runs of strategies with their models, by the id of the node's execution."""
    retries: dict[str, list[str]] = field(default_factory=dict)
    """The errors of the tries that failed, by the id of the node's execution."""
    mistakes: Mistakes = field(default_factory=Mistakes)

    @cached_property
    def ending(self) -> Ending:
        return Ending(self.around.stop)

    @cached_property
    def files(self) -> FileService:
        host = self.around.host
        return FileService(None if host is None else host.server)

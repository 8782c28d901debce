"""Plays flows in this process: what the tests of flows say, and what comes back."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from devhost.flow.document import FlowFile
from devhost.flow.engine.play import play
from devhost.flow.outside import OutsideAccess
from devhost.flow.turn import FlowTurn, TurnContext
from devhost.host.host import ToolHost
from devhost.protocol.wire import JsonObject
from devhost.script import Script, ScriptedModels
from devhost.trace.flow import FlowEnded, FlowEvent, NodeEnded

ROOT = Path(__file__).parents[2]
WORKFLOWS = ROOT / "examples" / "workflows"


def surroundings(host: ToolHost | None, models: JsonObject, knowledge: JsonObject | None = None) -> TurnContext:
    """`models`: by node, the turns of its scripted model; `knowledge`: by node, the segments that it finds."""
    script = Script.model_validate({"models": models, "knowledge": knowledge or {}})
    models_of_script = ScriptedModels(script, script)
    return TurnContext(host, models_of_script, knowledge=script.knowledge, allowed=OutsideAccess(http=True, code=True))


@dataclass(frozen=True)
class Played:
    events: tuple[FlowEvent, ...]

    @classmethod
    def of(
        cls, file: Path, turn: FlowTurn, host: ToolHost | None, models: JsonObject, knowledge: JsonObject | None = None
    ) -> Self:
        """`models` and `knowledge` are as in a flow's script."""
        return cls(tuple(play(FlowFile.read(file), turn, surroundings(host, models, knowledge))))

    @property
    def end(self) -> FlowEnded:
        end = self.events[-1]
        assert isinstance(end, FlowEnded)
        return end

    @property
    def nodes(self) -> list[NodeEnded]:
        return [event for event in self.events if isinstance(event, NodeEnded)]

    def node(self, name: str) -> NodeEnded:
        """The last run of a node."""
        return [ended for ended in self.nodes if ended.node.id == name][-1]

"""Every node of the examples' flows is one that the engine takes, with its data."""

from pathlib import Path

import pytest

from devhost.flow.checks import PLAYED
from devhost.flow.document import FlowFile
from devhost.flow.engine.factory import NODES, FlowNodeFactory
from devhost.flow.engine.play import Stretch
from devhost.flow.engine.turn import Forms, Playing
from devhost.flow.outside import Allowed
from devhost.flow.script import FlowScript, ScriptedModels
from devhost.flow.turn import FlowTurn, Surroundings
from tests.flows.playing import ROOT

FLOWS = {f"{file.parent.name}/{file.stem}": file for file in sorted(ROOT.glob("examples/*/*.yml"))}


@pytest.mark.parametrize("file", FLOWS.values(), ids=FLOWS)
def test_the_engine_takes_every_node(file: Path) -> None:
    script, flow = FlowScript(), FlowFile.read(file)
    around = Surroundings(None, ScriptedModels(script, script.model, "the test"), allowed=Allowed(code=True))

    stretch = Stretch.first(Playing(flow, FlowTurn("Hello"), around, Forms(flow)))

    assert stretch._engine._graph.nodes.keys() == flow.nodes.keys()


def test_the_checks_know_the_types_that_are_played() -> None:
    assert {*NODES, *map(str, FlowNodeFactory.NODE_BUILDERS)} == PLAYED

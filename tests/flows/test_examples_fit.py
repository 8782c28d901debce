"""Every node of the examples' flows is one that the engine takes, with its data."""

import time
from pathlib import Path

import pytest
from graphon.runtime.runtime_state import RuntimeState
from graphon.runtime.variable_pool import VariablePool

from devhost.flow.document import FlowFile
from devhost.flow.engine.play import _graph
from devhost.flow.engine.turn.playing import Playing
from devhost.flow.script import FlowScript, ScriptedModels
from devhost.flow.surroundings import FlowTurn, Surroundings
from tests.flows.playing import ROOT

FLOWS = {f"{file.parent.name}/{file.stem}": file for file in sorted(ROOT.glob("examples/*/*.yml"))}
for name in ("workflows/approval_form", "workflows/knowledge"):
    FLOWS.pop(name)  # until their nodes are here


@pytest.mark.parametrize("file", FLOWS.values(), ids=FLOWS)
def test_the_engine_takes_every_node(file: Path) -> None:
    script, flow = FlowScript(), FlowFile.read(file)
    around = Surroundings(None, ScriptedModels(script, script.model, "the test"))
    state = RuntimeState(variable_pool=VariablePool(), start_at=time.perf_counter(), workflow_id="a flow")

    graph = _graph(Playing(flow, FlowTurn("Hello"), around), state, "a run")

    assert graph.nodes.keys() == flow.nodes.keys()

"""Traces that earlier versions of devhost wrote stay readable: a run is turns, and a turn is nodes.

`oldest.jsonl` is of devhost's first day (0.1.0 had no devhost), `run.jsonl` and `flow.jsonl` of the last version that
read runs of strategies and of flows in two ways.
"""

import io
from pathlib import Path

import pytest
from rich.console import Console

from devhost.cli.trace import replay_trace
from devhost.comparison.comparison import compared
from devhost.comparison.side import Side
from devhost.console.folder import RunFolder
from devhost.console.listing import read_run
from devhost.terminal.screen import ViewOptions
from devhost.trace.lines import read_trace
from devhost.trace.turns import STRATEGY, traced_turns
from support.console import ConsoleClient, words
from support.page_reading import page_of

TRACES = Path(__file__).parent / "fixtures" / "traces"
FLOW = "One moment. ok now: Send the order?\n\nit is right"
KEPT = {"oldest": "Let me see. Two.", "run": "Let me see. Two.", "flow": FLOW}
"""By the name of the trace, what was answered."""

pytestmark = pytest.mark.parametrize(("name", "answer"), KEPT.items(), ids=KEPT)


def test_its_turn_has_nodes_and_an_agent_node_holds_the_strategys_run(name: str, answer: str) -> None:
    (turn,) = traced_turns(read_trace(TRACES / f"{name}.jsonl"))

    nodes = {False: ["start", "agent", "answer", "human-input", "answer"], True: ["agent"]}
    assert [row.node.type for _, row in turn.flat] == nodes[turn.is_direct]
    assert (turn.facts.kind == STRATEGY) is turn.is_direct is (turn.own is not None) is (name != "flow")
    (run,) = turn.outcomes
    assert [run] == list(turn.runs)
    assert run.outputs.text.endswith("Two.")
    assert turn.answer.strip() == answer
    assert (turn.ending.words, turn.ending.level) == ("finished", "good")


def test_each_of_its_views_shows_what_was_answered(name: str, answer: str) -> None:
    file = TRACES / f"{name}.jsonl"
    out = io.StringIO()
    assert replay_trace(read_trace(file), Console(file=out, width=120), ViewOptions())

    listed = read_run(RunFolder(TRACES), name)
    assert answer.rpartition("\n")[2] in out.getvalue()
    assert "finished in" in out.getvalue()
    assert (listed.answer.strip(), listed.state, listed.rounds) == (answer, "answered", 1)
    for line in filter(None, answer.split("\n")):
        assert line in page_of(file).text
        assert line in words(ConsoleClient(TRACES).get(f"/runs/{name}"))


def test_beside_itself_all_that_is_compared_is_the_same(name: str, answer: str) -> None:
    (turn,) = traced_turns(read_trace(TRACES / f"{name}.jsonl"))
    (pair,) = compared(("left", "right"), [Side(turn)], [Side(turn)]).turns

    assert pair.different == []
    assert {"answer", "outcome and cost", "question and inputs", "prompts"} <= set(pair.same)
    assert "\n".join(row.left for row in pair.parts[0].rows).strip() == answer

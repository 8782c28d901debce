"""Every case of the example flows: what its nodes put out, and what its tools stored after each turn."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from devhost.case import Case
from devhost.flow.cases import flow_case
from devhost.flow.checks import PLAYED
from devhost.flow.document import FlowFile
from devhost.flow.engine.factory import NODES, FlowNodeFactory
from devhost.flow.engine.play import EngineRun
from devhost.flow.engine.turn import RunningTurn
from devhost.flow.outside import OutsideAccess
from devhost.flow.turn import FlowTurn, TurnContext
from devhost.flow.whole import WholeFlow
from devhost.playing import play
from devhost.script import Script, ScriptedModels
from tests.flows.example_setups import ExampleSetups
from tests.flows.playing import ROOT, WORKFLOWS

CASES = {file.stem: file for file in sorted((WORKFLOWS / "cases").glob("*.yaml"))}

type Rows = Sequence[tuple[Any, ...]]


@dataclass(frozen=True)
class Stored:
    database: str
    """In the folder of the example's tools."""
    sql: str
    after: Sequence[Rows]
    """What it finds after each turn."""


OFFICE = "office.sqlite3", "SELECT body FROM mails"
RULES = "office.sqlite3", "SELECT body LIKE 'archive/house-rules%freezer%thirty days.' FROM mails"
DEEDS = "office.sqlite3", "SELECT count(*) FROM deeds"
DRAFT = (
    "order_entry.sqlite3",
    "SELECT status, version, order_number, (SELECT max(turn) FROM run_steps) FROM order_requests WHERE id = 3",
)
TASKS = "memos.sqlite3", "SELECT title, status FROM tasks"
CALLS = "answers.sqlite3", "SELECT tool, conversation <> '', turn FROM run_steps ORDER BY id"
FIVE = ("Five chairs for Harbour Hall.",)
TEN = ("Ten chairs for Harbour Hall.",)
CARETAKER = ("Five chairs will come.",)
STORED = {
    "approval": Stored(*OFFICE, [[], [], [], [FIVE], [FIVE], [FIVE], [FIVE, CARETAKER], [FIVE, CARETAKER]]),
    "approval_by_reference": Stored(*RULES, [[], [(1,)]]),
    "word_for_word": Stored(*DEEDS, [[(0,)], [(0,)]]),
    "approval_form": Stored(*OFFICE, [[], [TEN], [TEN], [TEN]]),
    "pictures": Stored(*OFFICE, [[]]),
    "order_entry": Stored(*DRAFT, [[("incomplete", 1, "", 1)], [("ready", 2, "", 2)], [("ready", 2, "", 2)]]),
    "memo_to_task": Stored(*TASKS, [[("Reply to Ms Sato", "progress")]] * 2),
    "answers": Stored(*CALLS, [[("search_documents", 1, 1), ("search_documents", 1, 1)]]),
}


@pytest.fixture(scope="module")
def setups(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExampleSetups]:
    with ExitStack() as opened:
        yield ExampleSetups(opened, tmp_path_factory.mktemp)


def file_of(case: Case) -> FlowFile:
    assert isinstance(case.played, WholeFlow)
    return case.played.file


@pytest.mark.parametrize("case", CASES)
def test_a_case_is_played(case: str, setups: ExampleSetups) -> None:
    read = flow_case(CASES[case], allowed=OutsideAccess(code=True))
    setup = setups.of(read.script.example)
    setup.begin("script")
    stored = STORED.get(case)

    found = []
    for turn in play(read, setup.host):
        assert turn.failures == ()
        found += [] if stored is None else [setup.stored(stored.database, stored.sql)]

    assert found == ([] if stored is None else stored.after)


def test_every_flow_has_a_case_and_every_case_with_tools_that_store_looks_into_their_database() -> None:
    cases = {name: flow_case(file) for name, file in CASES.items()}

    assert {file_of(case).path.resolve() for case in cases.values()} == set(ROOT.glob("examples/*/*.yml"))
    assert {name for name, case in cases.items() if case.script.example not in {None, "helpdesk"}} == set(STORED)


@pytest.mark.parametrize("case", CASES)
def test_every_turn_of_a_case_has_expectations(case: str) -> None:
    turns = flow_case(CASES[case]).script.said

    assert [turn for turn in turns if turn.expect is None] == []


FLOWS = {f"{file.parent.name}/{file.stem}": file for file in sorted(ROOT.glob("examples/*/*.yml"))}


@pytest.mark.parametrize("file", FLOWS.values(), ids=FLOWS)
def test_the_engine_takes_every_node(file: Path) -> None:
    script = Script()
    flow = FlowFile.read(file)
    around = TurnContext(None, ScriptedModels(script, script), allowed=OutsideAccess(code=True))

    stretch = EngineRun.first(RunningTurn(flow, FlowTurn("Hello"), around))

    assert stretch._engine._graph.nodes.keys() == flow.nodes.keys()


def test_the_checks_know_the_types_that_are_played() -> None:
    assert {*NODES, *map(str, FlowNodeFactory.NODE_BUILDERS)} == PLAYED

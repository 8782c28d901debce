"""The list of runs: what it says of each, what it finds, and what it costs to open it."""

import os
import re
from pathlib import Path

import pytest

from devhost.console import listing, runs_page
from devhost.console.folder import RunFolder
from devhost.console.listing import Index, Listed, read_run
from devhost.console.setup import Setup
from devhost.models.scripted.model import ScriptedModel
from devhost.node.outputs.outputs import NodeOutputs, no_usage
from devhost.node.outputs.run import Run, RunError
from devhost.trace.lines import TraceWriter
from support.console import ConsoleClient, words
from support.tracing import tracing

MODEL = ScriptedModel.of([{"text": "unused"}]).description


def ask(writer: TraceWriter, question: str) -> None:
    data = {"action": "invoke_agent_strategy", "agent_strategy_params": {"query": question}}
    writer.crossed("host", "puppet", {"event": "request", "session_id": question, "data": data})


def end(
    writer: TraceWriter, question: str, answer: str, error: RunError | None = None, reason: str = "answered"
) -> None:
    usage = {**no_usage(), "total_tokens": 1200}
    outputs = NodeOutputs(answer, [], [{"decision_summary": {"rounds": 3}}], usage, {"stop_reason": reason}, [], 0)
    writer.ended(question, Run("puppet", outputs, error, [], [], 2.5, session_id=question), MODEL)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Four runs, one of which is being written, and a file that is not a trace."""
    folder = tmp_path / "runs"
    folder.mkdir()
    with tracing(folder / "tea.jsonl", strategy="gpt5_react") as writer:
        ask(writer, "What is tea?")
        end(writer, "What is tea?", "A <b>drink</b>.")
        ask(writer, "And rice?")
        end(writer, "And rice?", "A grain.", reason="time_limit")
    with tracing(folder / "broken.jsonl") as writer:
        ask(writer, "Break.")
        end(writer, "Break.", "", RunError("ValueError", "the kettle is empty"))
    with tracing(folder / "killed.jsonl") as writer:
        ask(writer, "Die.")
    Setup(kind="fork", of="tea", values={"p.query": "Again?"}).write(folder / "fork.setup.json")
    (folder / "notes.jsonl").write_text("shopping\n", encoding="utf-8")
    return folder


def index_of(runs: Path) -> Index:
    return Index(RunFolder(runs))


def by_name(runs: Path) -> dict[str, Listed]:
    return {run.name: run for run in index_of(runs).look(60).runs}


def test_a_run_is_summed_up(runs: Path) -> None:
    tea = by_name(runs)["tea"]

    assert (tea.state, tea.shown_words, tea.title) == ("answered", "stopped at the limit of time", "What is tea?")
    assert (tea.strategy, tea.model) == ("gpt5_react", "scripted-gpt-5")
    assert (tea.seconds, tea.tokens, tea.rounds) == (5.0, 2400, 6)
    assert tea.answer == "A grain."


def test_a_setup_leads_to_no_page_but_that_of_a_run(runs: Path) -> None:
    (runs / "fork.setup.json").write_text('{"kind": "fork", "of": "../new?do=start"}', encoding="utf-8")

    assert not by_name(runs)["fork"].of


def test_how_runs_ended(runs: Path) -> None:
    found = by_name(runs)

    assert {name: found[name].state for name in ("tea", "broken", "killed", "fork")} == {
        "tea": "answered",
        "broken": "failed",
        "killed": "killed",
        "fork": "killed",
    }
    assert found["broken"].error == "ValueError: the kettle is empty"
    assert found["fork"].of == "tea"


def test_the_list_is_filtered_by_ending(runs: Path) -> None:
    page = ConsoleClient(runs).get("/?ending=failed")

    assert 'href="/runs/broken"' in page
    assert 'href="/runs/tea"' not in page
    assert "All 4 Answered 1 Failed 1 Running 0 Killed 2" in words(page)


def test_a_file_that_is_not_a_trace_is_named_with_the_reason(runs: Path) -> None:
    page = words(ConsoleClient(runs).get("/"))

    assert "1 file is not shown" in page
    assert "notes.jsonl : line 1: not a trace of devhost: not valid JSON" in page


def test_a_trace_is_read_again_only_when_it_has_changed(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = index_of(runs)
    index.look(60)
    read: list[str] = []

    def noted(folder: RunFolder, name: str) -> Listed:
        read.append(name)
        return read_run(folder, name)

    monkeypatch.setattr(listing, "read_run", noted)
    index.look(60)
    assert read == []

    with tracing(runs / "killed.jsonl") as writer:
        ask(writer, "Live.")
    (runs / "broken.jsonl").unlink()

    assert {run.name for run in index.look(60).runs} == {"tea", "killed", "fork", "notes"}
    assert read == ["killed"]


def test_a_list_that_is_not_whole_says_so_and_grows_from_look_to_look(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest is read first."""
    os.utime(runs / "broken.jsonl", (2e9, 2e9))
    monkeypatch.setattr(runs_page, "PATIENCE_SECONDS", 0)
    console = ConsoleClient(runs)

    first = console.get("/")
    assert "4 older runs are being read" in words(first)
    assert 'hx-trigger="every 300ms' in first
    assert re.findall(r'href="/runs/(\w+)"', first) == ["broken"]
    assert "Delete this run? What is tea?" in words(console.get("/delete?run=tea"))
    for unread in (3, 2, 1):
        assert f"{unread} older run" in words(console.get("/"))
    assert "being read" not in words(console.get("/"))


def test_a_deleted_run_can_be_taken_back(runs: Path) -> None:
    (runs / "tea.2.jsonl").write_bytes((runs / "tea.jsonl").read_bytes())
    (runs / "tea.case.yaml").write_text("turns: []\n", encoding="utf-8")
    Setup().write(runs / "tea.setup.json")
    console = ConsoleClient(runs)

    assert "Delete this run?" in words(console.get("/delete?run=tea"))
    assert console.post("/delete", run="tea") == "/"

    assert {file.name for file in (runs / "deleted" / "tea").iterdir()} == {"tea.jsonl", "tea.setup.json"}
    assert {"tea.2.jsonl", "tea.case.yaml"} <= {file.name for file in runs.iterdir()}
    assert "tea" not in by_name(runs)


def test_a_run_that_goes_on_is_not_deleted(runs: Path) -> None:
    with tracing(runs / "live.jsonl"):
        asked = ConsoleClient(runs).get("/delete?run=live")
        page = ConsoleClient(runs).post("/delete", 400, run="live")

    assert "It goes on: stop it first." in asked
    assert 'class="danger"' not in asked
    assert "stop it before you delete it" in page
    assert (runs / "live.jsonl").exists()

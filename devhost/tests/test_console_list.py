"""The list of runs: what it says of each, what it finds, and what is deleted."""

from pathlib import Path

import pytest

from devhost.console.folder import RunFolder
from devhost.console.listing import Index, Listed
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
    """Five runs, and a file that is not a trace."""
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
    with tracing(folder / "mail.jsonl") as writer:
        ask(writer, "Write to Ana.")
        end(writer, "Write to Ana.", "May I?", reason="approval_required")
    Setup(kind="fork", of="tea", values={"p.query": "Again?"}).write(folder / "fork.setup.json")
    (folder / "notes.jsonl").write_text("shopping\n", encoding="utf-8")
    return folder


def by_name(runs: Path) -> dict[str, Listed]:
    return {run.name: run for run in Index(RunFolder(runs)).runs(lambda _name: False)}


def test_what_is_said_of_runs(runs: Path) -> None:
    found = by_name(runs)
    tea = found["tea"]

    assert (tea.state, tea.badge[0], tea.title) == ("answered", "stopped at the limit of time", "What is tea?")
    assert (tea.strategy, tea.model, tea.answer) == ("gpt5_react", "scripted-gpt-5", "A grain.")
    assert (tea.seconds, tea.tokens, tea.rounds) == (5.0, 2400, 6)
    states = {"broken": "failed", "killed": "stopped", "fork": "stopped", "mail": "waiting"}
    assert {name: found[name].state for name in states} == states
    assert found["broken"].error == "ValueError: the kettle is empty"
    assert found["fork"].of == "tea"


def test_the_list_is_searched_filtered_by_ending_and_names_other_files(runs: Path) -> None:
    console = ConsoleClient(runs)
    failed = console.get("/?ending=failed")

    assert 'href="/runs/broken"' in failed
    assert 'href="/runs/tea"' not in failed
    assert "All 5 Answered 1 Waiting 1 Failed 1 Running 0 Stopped 2" in words(failed)
    assert "1 file not shown notes.jsonl : line 1: not a trace of devhost: not valid JSON" in words(failed)
    found = console.get("/?search=GRAIN+tea")
    assert ('href="/runs/tea"' in found, 'href="/runs/killed"' in found) == (True, False)


def test_a_run_is_deleted_to_a_folder_unless_it_goes_on(runs: Path) -> None:
    (runs / "tea.case.yaml").write_text("turns: []\n", encoding="utf-8")
    Setup().write(runs / "tea.setup.json")
    console = ConsoleClient(runs)

    assert console.post("/delete", run=["tea", "broken"]) == "/"

    assert {file.name for file in (runs / "deleted").iterdir()} == {"tea.jsonl", "tea.setup.json", "broken.jsonl"}
    assert (runs / "tea.case.yaml").exists()
    with tracing(runs / "live.jsonl"):
        assert "end it before you delete it" in console.post("/delete", 400, run="live")
    assert (runs / "live.jsonl").exists()

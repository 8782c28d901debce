"""The list of runs: what it says of each, what it finds, and what is deleted."""

import os
import re
from pathlib import Path

import pytest

from devhost.console.folder import RunFolder
from devhost.console.index import FILE, Index
from devhost.console.listing import ListedRun
from devhost.console.setup import Setup
from devhost.models.scripted.model import ScriptedModel
from devhost.node.outputs.outputs import NodeOutputs, no_usage
from devhost.node.outputs.run import Run, RunError
from devhost.trace.lines import TraceWriter
from support.console import ConsoleClient, words
from support.tracing import tracing
from support.waiting import wait_for

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


def by_name(runs: Path) -> dict[str, ListedRun]:
    return {run.name: run for run in Index(RunFolder(runs)).runs(lambda _name: False).runs}


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


# What a console has read is kept beside the traces for the next one.


def listed(index: Index) -> list[ListedRun]:
    return list(index.runs(lambda _name: False).runs)


def fail(*_: object) -> ListedRun:
    raise AssertionError("a trace was read again")


def test_the_next_console_reads_no_trace_that_has_not_changed(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = listed(Index(RunFolder(runs)))
    with monkeypatch.context() as patched:
        patched.setattr("devhost.console.index.read_run", fail)
        assert listed(Index(RunFolder(runs))) == before

    with (runs / "killed.jsonl").open("a") as trace:
        trace.write('{"event": "end"\n')
    status = (runs / "mail.jsonl").stat()
    (runs / "mail.jsonl").write_text((runs / "mail.jsonl").read_text().replace("Ana", "Eva"))
    os.utime(runs / "mail.jsonl", ns=(status.st_atime_ns, status.st_mtime_ns))
    (runs / "tea.jsonl").unlink()
    Setup(values={"strategy": "gpt5_react"}).write(runs / "fork.setup.json")

    after = {run.name: run for run in listed(Index(RunFolder(runs)))}
    assert "not valid JSON" in after["killed"].problem
    assert after["mail"].title == "Write to Eva."
    assert after["fork"].strategy == "gpt5_react"
    assert "tea" not in after
    assert after["broken"] == next(run for run in before if run.name == "broken")


@pytest.mark.parametrize("spoilt", ["by another devhost", "cut off", "not JSON", "a link"])
def test_a_spoilt_list_costs_time_and_nothing_else(runs: Path, spoilt: str, tmp_path: Path) -> None:
    before = listed(Index(RunFolder(runs)))
    file = runs / FILE
    text = file.read_text()
    target = tmp_path / "elsewhere"
    match spoilt:
        case "by another devhost":
            lies = text.replace("A grain.", "A lie.")
            file.write_text("".join(f"x{line[1:]}\n" for line in lies.splitlines()))  # no digest has an x
        case "cut off":
            file.write_text(text[:-40])
        case "not JSON":
            file.write_text(f"{text.splitlines()[0].split()[0]} {{]\n{text}\x00\n")
        case _:
            file.unlink()
            file.symlink_to(target)

    assert listed(Index(RunFolder(runs))) == before
    assert not target.exists()


def test_the_newest_are_read_at_once_and_the_others_by_a_thread(runs: Path) -> None:
    for number, name in enumerate(["tea", "broken", "killed", "mail", "notes"]):
        os.utime(runs / f"{name}.jsonl", (number, number))
    console = ConsoleClient(runs)
    console.console.__dict__["index"] = Index(console.console.folder, at_once=2)
    first = console.get("/")

    assert "4 files of this folder are still being read" in words(first)
    assert [name in first for name in ("listed-fork", "listed-mail", "listed-tea")] == [True, False, False]
    wait_for(lambda: "still being read" not in console.get("/"), "all are read")
    assert "All 5" in words(console.get("/"))


def test_whether_a_run_goes_on_is_asked_until_no_process_writes_its_trace(runs: Path) -> None:
    index = Index(RunFolder(runs))

    def live() -> list[str]:
        return [run.name for run in listed(index) if run.goes_on]

    with tracing(runs / "live.jsonl") as writer:
        ask(writer, "Wait.")
        assert live() == ["live"] == [run.name for run in listed(Index(RunFolder(runs))) if run.goes_on]
    assert live() == []
    with tracing(runs / "live.jsonl"):  # nothing is written yet but its first line, as before
        assert live() == ["live"]
    assert [run.name for run in index.runs(lambda name: name == "fork").runs if run.goes_on] == ["fork"]


def test_the_name_of_a_run_that_is_run_again_has_one_time(tmp_path: Path) -> None:
    name = RunFolder(tmp_path).new_name("20261130-100812-script-cb16.case")
    assert re.fullmatch(r"\d{8}-\d{6}-script-cb16-case-[0-9a-f]{4}", name)

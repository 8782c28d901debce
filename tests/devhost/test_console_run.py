"""A run's page: what it tells a browser while the run goes on, and what an opened row holds."""

import fcntl
import json
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from devhost import FunctionTool, Host, ScriptedModel
from devhost.console.live import Listener, RunReader
from devhost.console.pages.render import Pages
from devhost.console.runs import RunFolder
from devhost.console.server.app import application
from devhost.console.views.console import Console
from devhost.errors import TraceError
from devhost.page.page import render_page
from devhost.trace.lines import read_trace
from support.nesting import nested
from support.tracing import tracing
from tests.devhost import ROOT

ADDRESS, TOKEN = "http://127.0.0.1:8765", "t0k3n"
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"
PAGES = Pages()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A run of three rounds; the tool's result is hostile."""
    file = tmp_path_factory.mktemp("run") / "run.jsonl"
    asks: dict[str, Any] = {"tool_calls": [{"name": "look", "id": "call_1", "arguments": {"topic": HOSTILE}}]}
    with tracing(file) as writer, Host.start(ROOT, watcher=writer) as host:
        tool = FunctionTool("look", {"topic": "string"}, lambda _: f"{HOSTILE} {'w' * 100_000}")
        turns = [asks, asks, {"text": f"Nothing. {HOSTILE}"}]
        run = host.run("gpt5_function_calling", {"query": HOSTILE}, model=ScriptedModel.of(turns), tools=[tool])
    assert run.error is None
    return file.read_bytes()


def told(listener: Listener) -> list[tuple[str, Any]]:
    """The name of each event, and its data."""
    found = []
    for event in listener.news():
        first, second = event.strip().splitlines()
        found.append((first.removeprefix("event: "), json.loads(second.removeprefix("data: "))))
    return found


def test_a_browser_is_told_of_everything_once_and_then_of_what_changes(whole: bytes, tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    lines = whole.splitlines(keepends=True)
    listener = Listener("run", RunReader(file), PAGES)
    assert told(listener) == []

    pieces: dict[str, str] = {}
    rows: list[str] = []
    events = heads = begins = 0
    for number in range(len(lines)):
        file.write_bytes(b"".join(lines[: number + 1]))
        for name, data in told(listener):
            if name == "head":
                assert "puppet" in data["html"]
                heads += 1
                continue
            if name == "trace":
                begins += 1
                continue
            assert name == "section"
            assert bool(data["frame"]) == (not pieces)
            assert set(data["pieces"]) <= {"run-1-facts", "run-1-answer", "run-1-axis", "run-1-results", *data["rows"]}
            pieces |= data["pieces"]
            rows = data["rows"]
            events += 1
        assert told(listener) == []

    other = Listener("run", RunReader(file), PAGES)
    (*_, (_, all_at_once)) = told(other)
    assert (events > 3, heads, begins) == (True, 2, 1)  # what can be done with a run that was asked is in its head
    assert (all_at_once["pieces"], all_at_once["rows"]) == (pieces, rows)
    assert "ROUND 3" in pieces[rows[2]]
    assert "finished" in pieces["run-1-facts"]


def test_calls_that_are_nested_a_thousand_times_are_shown_side_by_side(
    whole: bytes, browser: TestClient, tmp_path: Path
) -> None:
    file = tmp_path / "deep.jsonl"
    file.write_bytes(nested(whole, 1_000))
    report = render_page(read_trace(file))
    page = browser.get("/runs/deep").text

    for html in (report, page):
        assert html.count(">look</b>") >= 1_000
        assert "What is nested deeper stands side by side here." in html


def test_a_round_that_has_ended_is_not_told_again(whole: bytes, tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    listener = Listener("run", RunReader(file), PAGES)
    lines = whole.splitlines(keepends=True)
    last = 0
    for number in range(len(lines)):
        file.write_bytes(b"".join(lines[: number + 1]))
        for data in [data for name, data in told(listener) if name == "section"]:
            changed = [data["rows"].index(row) for row in data["rows"] if row in data["pieces"]]
            assert min(changed, default=last) >= last - 1
            last = max([last, *changed])
    assert last == 3


def test_a_run_is_running_until_no_process_writes_its_trace(whole: bytes, tmp_path: Path) -> None:
    lines = whole.splitlines(keepends=True)
    with (tmp_path / "run.jsonl").open("wb") as written:
        fcntl.flock(written, fcntl.LOCK_SH)  # as the process that writes a trace holds it
        written.writelines(lines[: len(lines) // 2])
        written.flush()
        listener = Listener("run", RunReader(tmp_path / "run.jsonl"), PAGES)
        facts = told(listener)[-1][1]["pieces"]["run-1-facts"]
        assert "<dd>running</dd>" in facts
        assert "TraceEndsError" not in facts
        assert told(listener) == []

    facts = told(listener)[-1][1]["pieces"]["run-1-facts"]
    assert '<dd class="bad">not ended</dd>' in facts
    assert "TraceEndsError" in facts


def test_a_trace_that_is_gone_is_told_once_and_what_was_in_it_stays(whole: bytes, tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    file.write_bytes(whole)
    listener = Listener("run", RunReader(file), PAGES)
    told(listener)

    file.unlink()
    ((name, data),) = told(listener)
    assert (name, data) == ("problem", {"sentence": f"{file} is gone: this page shows what was in it."})
    assert told(listener) == []

    file.write_bytes(whole)
    assert told(listener)[0] == ("problem", {"sentence": ""})


def test_a_file_that_is_no_trace_is_a_problem_that_is_told_once(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    file.write_text("{}\n")
    listener = Listener("run", RunReader(file), PAGES)

    ((name, data),) = told(listener)

    assert name == "problem"
    assert "not a trace of devhost" in data["sentence"]
    assert told(listener) == []

    file.unlink()
    assert told(listener) == [("problem", {"sentence": ""})]
    assert told(listener) == []


def test_a_file_that_is_no_trace_is_a_problem_at_every_look(whole: bytes, tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    file.write_bytes(whole + b"{}\n")
    reader = RunReader(file)

    for _ in range(2):
        with pytest.raises(TraceError, match="line"):
            reader.read()

    file.write_bytes(whole)
    assert len(reader.read().runs) == 1


def test_of_a_longer_trace_nothing_stays_when_a_run_writes_over_it(whole: bytes, tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    header, rest = whole.split(b"\n", 1)
    session = json.loads(rest.splitlines()[-1])["session_id"].encode()
    file.write_bytes(whole + rest.replace(session, b"another"))
    listener = Listener("run", RunReader(file), PAGES)
    first = told(listener)
    assert [data.get("run") for name, data in first if name == "section"] == [1, 2]

    again = json.dumps({**json.loads(header), "started": "2030-01-01T00:00:00Z"}).encode()
    file.write_bytes(again + b"\n" + rest.replace(HOSTILE.encode(), b"Why?"))
    second = told(listener)

    assert [name for name, _ in second] == ["trace", "head", "section"]
    assert first[0] != second[0] == ("trace", {"began": "2030-01-01T00:00:00+00:00"})
    assert "Why?" in second[-1][1]["frame"], "its own question"
    assert set(second[-1][1]["rows"]) < set(second[-1][1]["pieces"]), "all of it"


def test_a_run_that_writes_over_a_trace_takes_its_place(whole: bytes, tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    header, rest = whole.split(b"\n", 1)
    file.write_bytes(whole)
    reader = RunReader(file)
    listener = Listener("run", reader, PAGES)
    told(listener)
    before = reader.read()

    again = json.dumps({**json.loads(header), "started": "2030-01-01T00:00:00Z"}).encode()
    file.write_bytes(again + b"\n" + rest.replace(b"Nothing.", b"Everything.").replace(b"ROUND 1", b"topic is new"))

    after = reader.read()
    assert before.trace is not None
    assert after.trace is not None
    assert len(after.trace.lines) == len(before.trace.lines)
    assert after.runs[0].outputs.text.startswith("Everything.")
    assert reader.read() is after
    assert "topic is new" in " ".join(told(listener)[-1][1]["pieces"].values())


@pytest.fixture
def browser(whole: bytes, tmp_path: Path) -> TestClient:
    (tmp_path / "first.jsonl").write_bytes(whole)
    client = TestClient(application(Console(RunFolder(tmp_path)), 8765, TOKEN), base_url=ADDRESS)
    client.get(f"/?token={TOKEN}")
    return client


def test_the_page_has_everything_but_what_rows_hold(browser: TestClient) -> None:
    page = browser.get("/runs/first").text

    assert page.count('<div class="inside"></div>') == page.count('<div class="inside">')
    assert "ROUND 3" in page
    assert HOSTILE not in page
    assert len(page) < 60_000


def test_a_row_is_loaded_when_it_is_opened(browser: TestClient, tmp_path: Path) -> None:
    (shown,) = RunReader(tmp_path / "first.jsonl").read().runs
    (row, *_) = [shown.anchors[id(span)] for _, span in shown.rows if span.label == "CALL look"]

    inside = browser.get(f"/runs/first/rows/{row}")

    assert "Sent to the tool" in inside.text
    assert HOSTILE not in inside.text
    assert "&lt;script&gt;" in inside.text
    assert "more characters in the trace" in inside.text
    assert browser.get("/runs/first/rows/row-1-none").status_code == 404


def test_all_of_a_row_is_there_as_plain_text(browser: TestClient, tmp_path: Path) -> None:
    (shown,) = RunReader(tmp_path / "first.jsonl").read().runs
    by_label = {span.label: shown.anchors[id(span)] for _, span in shown.rows}

    called = browser.get(f"/runs/first/rows/{by_label['CALL look']}/text")
    asked = browser.get(f"/runs/first/rows/{by_label['scripted-gpt-5']}/text")

    assert called.headers["content-type"].startswith("text/plain")
    assert "w" * 100_000 in called.text
    assert "[system]" in asked.text


def test_rows_are_found_by_words_of_arguments_results_and_answers(browser: TestClient, tmp_path: Path) -> None:
    (shown,) = RunReader(tmp_path / "first.jsonl").read().runs
    labels = {shown.anchors[id(span)]: span.label for _, span in shown.rows}

    def found(words: str) -> list[str]:
        return [labels[row] for row in browser.get("/runs/first/search", params={"words": words}).json()]

    assert found("onerror WWWW") == ["ROUND 1", "CALL look", "ROUND 2", "CALL look"]
    assert found("nothing.") == ["ROUND 3", "scripted-gpt-5"]
    assert "ROUND 2" in found("round 2")
    assert found("  ") == found("never said") == []

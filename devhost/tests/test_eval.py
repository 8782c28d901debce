"""`devhost eval`: matrix, repeats, threshold, reports, comparison, and what it says to mistakes."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from devhost.cli.commands import main
from devhost.evaluation.results import INTERRUPTED, PREVIOUS, kept_beside
from devhost.evaluation.runs import side_by_side
from devhost.trace.lines import read_trace
from devhost.trace.runs import traced_runs
from fake_openai import KEY, FakeOpenAI, Turn
from support.evaluating import WHERE, call, case, evaluate, result_lines, variable, write
from support.plugins import PROJECT, PUPPET
from support.waiting import PATIENCE, wait_for

pytestmark = pytest.mark.usefixtures("lent_plugins")

GREETS = case("greets", {"ask": "hello"}, said="Good day", expect={"text": {"contains": "Good"}})
DRAWS = case(
    "draws",
    call("draw", size=10),
    variable("stop_reason", "call_limit"),
    variable("sources", [{"title": "Manual", "document_id": "m.md", "cited": True}, {"title": "Other"}]),
    expect={
        "calls": {"exactly": [{"draw": {"size": 10}}]},
        "stop_reason": "call_limit",
        "sources": {"cited": "m.md", "at_most": 1},
        "rounds": 0,
    },
)
MOODS = case(
    "moods", {"say_parameters": ["mood"]}, expect={"text": {"equals": '{"mood": "calm"}'}}, params={"mood": "calm"}
)

ACTS = """
    def _act(self, path: str) -> Messages:
        with open(path) as orders:
            yield self.create_text_message(orders.read())
        with open(path, "a") as orders:
            orders.write("x")
"""
"""A further step of the puppet."""


@pytest.fixture
def acting(tmp_path: Path) -> list[str]:
    """The options that name a puppet with that step."""
    shutil.copytree(PUPPET, tmp_path / "puppet")
    with (tmp_path / "puppet" / "strategies" / "puppet.py").open("a") as code:
        code.write(ACTS)
    return ["--plugin", str(tmp_path / "puppet")]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "cases.results.jsonl"


def test_cases_run_in_every_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = [{"name": "as it is"}, {"name": "wild", "params": {"mood": "wild"}}]
    file = write(tmp_path, GREETS, DRAWS, MOODS, columns=columns, threshold=0.6)
    assert evaluate(file, "--json") == 0
    shown = capsys.readouterr()
    report = json.loads(shown.out)
    cells = {(cell["name"], cell["column"]): cell["passed"] for cell in report["cells"]}
    assert [name for name, passed in cells.items() if not passed] == [("moods", "wild")]
    assert len(cells) == 6
    assert [(column["passed"], column["share"]) for column in report["columns"]] == [(3, 1.0), (2, 2 / 3)]
    assert "scripted: models and judges answer from the cases' scripts" in shown.err
    assert 'text equals: expected {"mood": "calm"}\n    found {"mood": "wild"}' in shown.err


def test_a_case_says_that_a_tool_failed_also_when_it_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tries = case("tries", call("draw"), expect={"calls": {"exactly": ["draw"]}})
    file = write(tmp_path, tries)
    assert evaluate(file) == 0
    told = capsys.readouterr().out
    assert "✓ passed, 1 tool call failed" in told
    assert "it passes, but calls failed\n  call failed: draw: KeyError: 'size', tools/draw.py:" in told
    file = write(tmp_path, {**tries, "expect": {"failed_calls": 0}})
    page = tmp_path / "page.html"
    assert evaluate(file, "--report", str(page)) == 1
    told = capsys.readouterr().out
    assert "failed_calls: expected at most 0" in told
    assert "found 1: draw: KeyError: 'size', tools/draw.py:" in told
    assert "call failed:" not in told, "once is enough"
    assert "draw({}) failed: KeyError" in page.read_text()


@pytest.mark.parametrize(("threshold", "code"), [("0.5", 0), ("0.51", 1)])
def test_the_exit_code_says_whether_each_column_reaches_the_threshold(
    tmp_path: Path, threshold: str, code: int
) -> None:
    fails = {**GREETS, "name": "fails", "expect": {"text": {"contains": "Good night"}}}
    assert evaluate(write(tmp_path, GREETS, fails), "--threshold", threshold) == code


def test_runs_that_do_not_fit_have_a_trace_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fails = {**DRAWS, "expect": {"text": {"contains": "Good night"}}}
    file = write(tmp_path, GREETS, {**fails, "name": "one"}, {**fails, "name": "<two>"})
    assert evaluate(file, "--traces", str(tmp_path / "traces")) == 1

    traces = sorted((tmp_path / "traces").iterdir())
    assert [trace.name.rpartition("-")[0].partition("-")[0] for trace in traces] == ["one", "two"]
    assert capsys.readouterr().out.replace("\n", "").count("trace:") == len(traces)
    for trace in traces:
        (run,) = traced_runs(read_trace(trace))
        assert [call.name for call in run.calls if call.kind == "tool"] == ["draw"]
        assert run.end is not None


def test_repeats_have_a_rate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fails = {**GREETS, "name": "fails", "expect": {"text": {"contains": "Good night"}}, "rate": 0.0}
    file = write(tmp_path, {**GREETS, "repeats": 3}, fails)
    assert evaluate(file) == 0
    assert "✓ passed 3/3" in capsys.readouterr().out
    assert evaluate(file, "--repeats", "2") == 0
    shown = capsys.readouterr().out
    assert "✓ passed 2/2" in shown
    assert "✓ passed 0/2" in shown


def test_a_script_goes_on_after_the_question_and_files_and_failures_of_tools_are_the_scripts(tmp_path: Path) -> None:
    script = {
        "turns": [{"text": "one"}],
        "then": [{"query": json.dumps([call("draw", size=1), {"ask": "x"}]), "turns": [{"text": "two"}]}],
        "api_fails": {"draw": "http_500"},
    }
    expect = {"text": {"equals": "two"}, "calls": {"exactly": ["draw"]}, "rounds": 2}
    talks = {"name": "talks", "query": json.dumps([{"ask": "x"}]), "script": script, "expect": expect}
    assert evaluate(write(tmp_path, talks)) == 0


def test_a_judge_without_a_key_is_a_script_and_says_so(
    tmp_path: Path, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    turns = [
        {"when": "Good day", "text": '{"passed": true, "reason": "Polite."}'},
        {"text": '{"passed": false, "reason": "Rude."}'},
    ]
    expect = {"judge": {"rubric": "Polite?", "turns": turns}}
    rude = case("rude", {"ask": "hello"}, said="Go away", expect=expect)
    assert evaluate(write(tmp_path, {**GREETS, "expect": expect}, rude), "--report", str(tmp_path / "p.html")) == 1
    remarks = {line["case"]: line["checks"][0]["remark"] for line in result_lines(results)}
    assert remarks == {"greets": "a scripted judge: Polite.", "rude": "a scripted judge: Rude."}
    assert "a scripted judge: Rude." in (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "found Rude." in capsys.readouterr().out


def test_strict_also_fails_a_run_that_breaks_a_rule_of_dify(tmp_path: Path) -> None:
    breaks = case("breaks", {"say": "<think>open"}, {"say": "a\0b"})
    assert evaluate(write(tmp_path, breaks)) == 0
    assert evaluate(write(tmp_path, breaks), "--strict") == 1


def test_the_page_shows_what_was_said_as_text(tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>\x01"
    bad = case("<b>bad</b>", {"say": hostile}, expect={"text": {"contains": "]]>"}})
    page = tmp_path / "page.html"
    junit = tmp_path / "junit.xml"
    assert evaluate(write(tmp_path, GREETS, bad), "--report", str(page), "--junit", str(junit)) == 1
    html = page.read_text(encoding="utf-8")
    assert "&lt;script&gt;alert(1)" in html
    assert "The model is scripted" in html
    assert [each for each in ("<script", "<b>bad", "http:", "https:") if each in html] == []
    (suite,) = ET.fromstring(junit.read_bytes())  # noqa: S314 - our own
    assert (suite.get("name"), suite.get("tests"), suite.get("failures")) == ("default", "2", "1")
    (good, failed) = suite
    assert (good.get("name"), list(good)) == ("greets", [])
    assert "text contains: expected ]]>; found <script>" in "".join(failed.itertext())


def test_a_comparison_says_what_got_better_and_worse_and_what_was_changed(
    tmp_path: Path, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the evaluations that ended, the last one is compared; both can be shown again without a run.

    A mistake in --against leaves the last one where it is, which can also be named by its file.
    """
    is_wild = {**MOODS, "name": "is wild", "params": {}, "expect": {"text": {"equals": '{"mood": "wild"}'}}}
    is_calm = {**MOODS, "name": "is calm", "params": {}}
    assert evaluate(write(tmp_path, is_wild, is_calm, GREETS, params={"mood": "calm"})) == 1
    page = tmp_path / "page.html"
    file = write(tmp_path, is_wild, is_calm, DRAWS, params={"mood": "wild"})
    capsys.readouterr()
    assert evaluate(file, "--against", "last", "--json", "--report", str(page)) == 1
    shown = capsys.readouterr()
    (column,) = json.loads(shown.out)["comparison"]
    assert [change["name"] for change in column["better"]] == ["is wild"]
    assert [change["name"] for change in column["worse"]] == ["is calm"]
    assert column["changed_settings"] == ['params.mood: "calm" → "wild"']
    sentence = "1 of 2 cases got better, 1 got worse"
    kept = results.read_bytes()
    assert evaluate(file, "--show", "--against", str(kept_beside(results, PREVIOUS))) == 1
    assert evaluate(file, "--against", str(tmp_path / "none.jsonl")) == 2
    assert results.read_bytes() == kept
    assert evaluate(file, "--against", str(results)) == 1
    for told in (shown.err, page.read_text(encoding="utf-8"), capsys.readouterr().out):
        assert sentence in told
    assert "<h3>Answer</h3><pre" in page.read_text(encoding="utf-8"), "JSON is no Markdown"


def test_runs_go_on_side_by_side() -> None:
    """Each waits for the other."""
    both = threading.Barrier(2, timeout=PATIENCE)
    assert len(list(side_by_side([1, 2], lambda _: both.wait(), 2))) == 2


def test_real_models_answer_and_judge_and_the_key_is_in_no_result(
    tmp_path: Path, results: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A case needs no script then."""
    expect = {"text": {"contains": "four"}, "judge": {"rubric": "It is about four."}}
    asks = {"name": "asks", "query": json.dumps([{"ask": "2 + 2?"}]), "expect": expect}
    file = write(tmp_path, asks, columns=[{"name": "small", "model": "gpt-4.1"}])
    verdict = Turn(text='{"passed": true, "reason": "It is four."}')
    with FakeOpenAI() as fake:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", fake.base_url)
        fake.will(Turn(text=f"It is four, and my key is {KEY}."), verdict)
        options = ["--model", "gpt-5", "--judge-model", "gpt-5.4", "--api", "chat", "--json"]
        assert main(["eval", str(file), *WHERE, *options]) == 0
        assert [request["model"] for _, request in fake.requests] == ["gpt-4.1", "gpt-5.4"]
        judge = fake.requests[1][1]["messages"]
    assert "It is about four." in judge[0]["content"]
    assert "It is four, and" in judge[1]["content"]
    shown = capsys.readouterr()
    (cell,) = json.loads(shown.out)["cells"]
    assert cell["results"][0]["checks"][-1]["remark"] == "judged by gpt-5.4: It is four."
    assert "scripted" not in shown.err
    assert KEY not in results.read_text(encoding="utf-8") + shown.out + shown.err


@pytest.mark.processes
def test_an_interrupted_evaluation_goes_on_where_it_was(
    tmp_path: Path, results: Path, acting: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The third case reads a pipe that nobody writes to, so the process is stopped on a state."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    file = write(tmp_path, GREETS, MOODS, case("hangs", {"act": str(pipe)}), DRAWS)
    options = [*acting, "--jobs", "1"]
    command = [sys.executable, "-m", "devhost", "eval", str(file), *WHERE, "--scripted", *options]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        wait_for(lambda: results.exists() and len(result_lines(results)) == 2, "two results")
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    assert "2 passed, 0 failed of 4 runs" in stdout
    interrupted = results.read_bytes()
    assert evaluate(file, "--show") == 1
    assert "interrupted: 2 of 4 runs have a result" in capsys.readouterr().out

    pipe.unlink()
    pipe.write_text("no pipe any more")
    results.write_bytes(interrupted + b'{"case": "cut o')
    assert evaluate(file, *options) == 0
    assert "continuing: 2 of 4 runs have a result" in capsys.readouterr().out
    assert results.read_bytes().startswith(interrupted)
    assert [line["case"] for line in result_lines(results)] == ["greets", "moods", "hangs", "draws"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--fresh"], "starting over: 1 of 2 runs are kept in"),
        (["--param", "mood=calm"], "starting over: cases, scripts or options changed since the interrupted"),
    ],
)
def test_an_evaluation_that_begins_again_keeps_the_one_before(
    tmp_path: Path, results: Path, capsys: pytest.CaptureFixture[str], options: list[str], sentence: str
) -> None:
    file = write(tmp_path, GREETS, MOODS)
    assert [evaluate(file), evaluate(file)] == [0, 0]
    finished = kept_beside(results, PREVIOUS).read_bytes()
    interrupted = b"".join(results.read_bytes().splitlines(keepends=True)[:2])
    results.write_bytes(interrupted)
    capsys.readouterr()
    assert evaluate(file, *options) == 0
    assert sentence in capsys.readouterr().out
    assert len(result_lines(results)) == 2
    kept = [kept_beside(results, which).read_bytes() for which in (INTERRUPTED, PREVIOUS)]
    assert kept == [interrupted, finished]


def test_a_plugin_that_ends_fails_its_run_and_those_after_it(tmp_path: Path, results: Path) -> None:
    file = write(tmp_path, GREETS, case("dies", {"crash": "gone"}), MOODS)
    assert evaluate(file, "--jobs", "1") == 1
    errors = {line["case"]: (line["observed"]["error"] or "").partition(":")[0] for line in result_lines(results)}
    assert errors == {"greets": "", "dies": "PluginLostError", "moods": "PluginLostError"}


@pytest.mark.processes
def test_what_acts_finds_the_same_before_each_run(
    tmp_path: Path, acting: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    orders = tmp_path / "orders.txt"
    (tmp_path / "fresh.txt").write_text("fresh")
    steps = [{"copy": "fresh.txt", "to": orders.name}, f"printf er >> {orders.name}"]
    acts = case("acts", {"act": str(orders)}, expect={"text": {"equals": "fresher"}}, repeats=3)

    file = write(tmp_path, acts, reset=steps)
    for _ in range(2):
        assert evaluate(file, *acting) == 0
    assert orders.read_text() == "fresherx"
    assert "One run at a time: each begins with its reset." in capsys.readouterr().out

    assert evaluate(write(tmp_path, {**acts, "reset": []}, reset=steps), *acting) == 1, "it found its own order"


@pytest.mark.parametrize(
    ("step", "sentence"),
    [
        ("echo no order desk; exit 3", "echo no order desk; exit 3: exit code 3\nno order desk"),
        ({"copy": "missing.db", "to": "orders.db"}, "copy missing.db to orders.db: [Errno 2] No such file"),
    ],
)
def test_a_reset_that_fails_ends_the_evaluation_and_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], step: object, sentence: str
) -> None:
    file = write(tmp_path, {**GREETS, "reset": step})
    assert evaluate(file) == 2
    where = f"Error: {file}: case 'greets', column 'default': the reset failed in {tmp_path}: "
    assert f"{where}{sentence}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"expct": {}}, ": unknown key 'expct'"),
        ({"expect": {"txt": {}}}, ", expect: unknown key 'txt'"),
        ({"files": 3}, ", files: Input should be a list"),
        ({"expect": {"text": {"json_schema": {"type": "objekt"}}}}, ", expect.text.json_schema: not a JSON Schema"),
        (
            {"expect": {"calls": {"exactly": [{"a": 1}]}}},
            ", expect.calls.exactly[0]: should be a tool's name",
        ),
        ({"turns": [{"txt": "x"}]}, ", turns[0]: unknown key 'txt'"),
        ({"reset": {"copy": "x"}}, ", reset[0]: should be a command, or {copy: FILE, to: FILE}"),
        ({"expect": None}, ", column 'default': the case needs expect: neither it nor its script says what"),
        (
            {"expect": {"calls": {"never": ["drew"]}}},
            ", column 'default': expect, calls: there is no tool 'drew'",
        ),
        ({"query": " "}, ", column 'default': there is no question: give the case a query"),
        ({"scenario": "x"}, ", column 'default': scenario and turns are both scripts: give one of them"),
        ({"params": {"mod": 1}}, ", column 'default': there is no parameter 'mod'"),
        (
            {"expect": {"judge": {"rubric": "x"}}},
            ", column 'default': expect, judge: without a key the judge",
        ),
    ],
)
def test_a_mistake_in_a_case_is_one_sentence_that_says_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changed: dict[str, Any], sentence: str
) -> None:
    file = write(tmp_path, {**GREETS, **changed})
    assert evaluate(file) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith(f"Error: {file}: case 'greets'{sentence}")


@pytest.mark.parametrize(
    ("keys", "options", "sentence"),
    [
        ({"cases": [GREETS, GREETS]}, [], "2 cases are named 'greets': give each a name of its own"),
        ({"cases": []}, [], "cases.yaml: cases: Input should have an entry"),
        ({"columns": [{"strategy": "nobody"}]}, [], "there is no strategy 'nobody'"),
        ({}, ["--case", "nothing*"], "--case 'nothing*' matches nothing in"),
        ({}, ["--against", "last"], "--against last: there is no earlier evaluation"),
        ({}, ["--report", "missing/page.html"], "the folder missing does not exist"),
        ({}, ["--judge-model", "x"], "--judge-model is for a model behind an API"),
    ],
)
def test_a_mistake_is_found_before_the_first_run(
    keys: dict[str, Any], options: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluate(write(tmp_path, **{"cases": [GREETS], **keys}), *options) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "cases.results.jsonl").exists()


def test_files_of_others_are_not_overwritten(tmp_path: Path, results: Path) -> None:
    notes = tmp_path / "notes.html"
    for other in (notes, results):
        other.write_text("my notes\n")
    file = write(tmp_path, GREETS)
    assert [evaluate(file, "--report", str(notes)), evaluate(file)] == [2, 2]
    assert [notes.read_text(), results.read_text()] == ["my notes\n"] * 2

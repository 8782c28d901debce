"""A run's page: what it shows while the run goes on, what an opened row holds, and what the run waits for."""

import fcntl
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from devhost import FunctionTool, Host, NodeOutputs, Run, RunError, ScriptedModel
from devhost.console.conversation import ChildFacts, State, approved, rejected, said, state_of, suggestion, waiting_of
from devhost.console.folder import MOST_BYTES, OUTPUT, TRACE, RunFolder, last_printed
from devhost.console.readers import Seen
from devhost.console.run_page import watched
from devhost.console.setup import SETUP, Setup
from devhost.console.web import Told
from devhost.node.outputs.run import CallsMade
from devhost.page.page import render_page
from devhost.trace.lines import read_trace
from support.console import ConsoleClient
from support.nesting import nested
from support.tracing import tracing
from tests.devhost import ROOT

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"
STUB = re.compile(r'<details id="([^"]+)" data-same></details>')
type Look = Callable[[], Mapping[str, str]]


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


@pytest.fixture
def console(whole: bytes, tmp_path: Path) -> ConsoleClient:
    (tmp_path / "first.jsonl").write_bytes(whole)
    return ConsoleClient(tmp_path)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Of a run whose trace a test writes."""
    Setup().write(tmp_path / f"run{SETUP}")
    return tmp_path / f"run{TRACE}"


@pytest.fixture
def look(console: ConsoleClient, file: Path) -> Look:
    """What one browser that watches this run is shown."""
    assert not file.exists()
    show, _ = watched(console.console, "run")
    told = Told()
    return lambda: show(told).html


def test_a_browser_gets_what_has_changed_and_a_round_that_has_ended_once(
    whole: bytes, console: ConsoleClient, file: Path, look: Look
) -> None:
    lines, ended, sent = whole.splitlines(keepends=True), 0, 0
    for number in range(len(lines)):
        file.write_bytes(b"".join(lines[: number + 1]))
        runs = look()["runs"]
        ended, sent = len(STUB.findall(runs)), runs.count('style="--depth:0"')
        assert sent <= 2, "the row that has ended, and the one that begins"
    assert ended + sent == 4
    assert len(STUB.findall(look()["runs"])) == 4

    all_at_once = watched(console.console, "run")[0](Told()).html
    assert "ROUND 3" in all_at_once["runs"]
    assert '<dt>Outcome</dt><dd class="good">finished</dd>' in all_at_once["runs"]
    assert "Run again with a change" in all_at_once["head"]
    assert not STUB.findall(all_at_once["runs"])


def test_a_run_is_running_until_no_process_writes_its_trace(whole: bytes, file: Path, look: Look) -> None:
    lines = whole.splitlines(keepends=True)
    with file.open("wb") as written:
        fcntl.flock(written, fcntl.LOCK_SH)  # as the process that writes a trace holds it
        written.writelines(lines[: len(lines) // 2])
        written.flush()
        during = look()
    after = look()

    assert "<dd>running</dd>" in during["runs"]
    assert "TraceEndsError" not in during["runs"]
    assert "The run goes on in a process that this console did not start" in during["waiting"]
    assert '<dd class="bad">not ended</dd>' in after["runs"]
    assert "TraceEndsError" in after["runs"]


def test_what_is_wrong_with_a_trace_is_said_and_what_was_in_it_stays(whole: bytes, file: Path, look: Look) -> None:
    file.write_bytes(whole)
    assert look()["problem"] == ""
    file.unlink()
    assert look() == {"problem": f"{file} is gone: this page shows what was in it."}
    for _ in range(2):
        file.write_text("{}\n")
        assert "not a trace of devhost" in look()["problem"]
    file.write_bytes(whole + b"{}\n")
    assert "line" in look()["problem"]
    file.write_bytes(whole)
    assert look()["problem"] == ""


# --- rows -------------------------------------------------------------------------------------------------------------


def anchors(console: ConsoleClient) -> dict[str, str]:
    """Of rows, by their labels; the last one of a label."""
    (shown,) = console.console.readers.of(console.console.folder.trace("first")).read().runs
    return {span.label: shown.anchor(span) for span in shown.rows}


def test_calls_that_are_nested_a_thousand_times_are_shown_side_by_side(
    whole: bytes, console: ConsoleClient, tmp_path: Path
) -> None:
    file = tmp_path / "deep.jsonl"
    file.write_bytes(nested(whole, 1_000))

    for html in (render_page(read_trace(file)), console.get("/runs/deep")):
        assert html.count(">look</b>") >= 1_000


def test_the_page_has_everything_but_what_rows_hold(console: ConsoleClient) -> None:
    page = console.get("/runs/first")

    assert len(re.findall(r'<div class="inside" [^>]*></div>', page)) == page.count('<div class="inside"') > 3
    assert "ROUND 3" in page
    assert HOSTILE not in page
    assert len(page) < 60_000


def test_a_row_is_loaded_when_it_is_opened_and_all_of_it_as_plain_text(console: ConsoleClient) -> None:
    rows = anchors(console)
    inside = console.get(f"/runs/first/rows/{rows['CALL look']}")
    called = console.client.get(f"/runs/first/rows/{rows['CALL look']}/text")

    assert "<h3>Arguments</h3>" in inside
    assert HOSTILE not in inside
    assert "&lt;script&gt;" in inside
    assert "more characters in the trace" in inside
    assert called.headers["content-type"].startswith("text/plain")
    assert "w" * 100_000 in called.text
    assert "[system]" in console.get(f"/runs/first/rows/{rows['scripted-gpt-5']}/text")
    console.get("/runs/first/rows/row-1-none", 404)


def test_rows_are_found_by_words_of_arguments_results_and_answers(console: ConsoleClient) -> None:
    (shown,) = console.console.readers.of(console.console.folder.trace("first")).read().runs
    labels = {shown.anchor(span): span.label for span in shown.rows}

    def found(words: str) -> list[str]:
        return [labels[row] for row in json.loads(console.get(f"/runs/first/search?words={words}"))]

    assert found("onerror WWWW") == ["ROUND 1", "CALL look", "ROUND 2", "CALL look"]
    assert found("nothing.") == ["ROUND 3", "scripted-gpt-5"]
    assert "ROUND 2" in found("round 2")
    assert found("  ") == found("never said") == []


# --- what a conversation waits for ------------------------------------------------------------------------------------

CALL = {"id": "call_1", "tool": "draw", "arguments": {"what": "a cat"}}
FAILED = RunError("ValueError", "broke")


def turn(*pending: object, error: RunError | None = None, **asked: int) -> Run:
    variables = {"state": "kept", "pending_calls": list(pending)}
    outputs = NodeOutputs("", [], [], {}, variables, [], 0)
    return Run("puppet", outputs, error, [], [], 0.0, CallsMade(asked))


def going(told: int) -> ChildFacts:
    return ChildFacts(told, None)


@pytest.mark.parametrize(
    ("ended", "child", "expected"),
    [
        ([], None, State("over")),
        ([turn(CALL)], None, State("over")),
        ([], ChildFacts(1, 2), State("ended")),
        ([turn(CALL)], ChildFacts(1, -9), State("ended")),
        ([], going(1), State("running")),
        ([turn()], going(2), State("running")),
        ([], going(0), State("question")),
        ([turn()], going(1), State("question")),
        ([turn(), turn(CALL)], going(2), State("approval", (CALL,))),
        ([turn(CALL), turn()], going(2), State("question")),
        ([turn(CALL), turn(error=FAILED, llm=1)], going(2), State("approval", (CALL,))),
        ([turn(CALL), turn(error=FAILED, tool=1)], going(2), State("question")),
        ([turn()], ChildFacts(0, None, converses=False), State("running")),
    ],
)
def test_the_state_follows_from_the_turns_and_the_child(
    ended: list[Run], child: ChildFacts | None, expected: State
) -> None:
    assert state_of([[run] for run in ended], child) == expected


def test_no_words_are_a_command_of_the_chat() -> None:
    assert json.loads(said("/reset now")) == " /reset now"
    assert json.loads(said("two\nlines")) == "two\nlines"
    assert "\n" not in said("two\nlines")
    assert [json.loads(line) for line in (approved(), rejected("ok"), rejected(""))] == ["yes", "no: ok", "no"]


def test_a_run_of_another_console_is_over_and_says_what_it_printed_without_colours(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    values = {"plugin": str(ROOT), "source": "example:order_entry/approved", "strategy": "gpt5_react"}
    Setup(values=values).write(folder.beside("old", SETUP))
    folder.beside("old", OUTPUT).write_text("\x1b[31mError: the plugin\x1b[0m\x07 broke\n")

    with tracing(folder.beside("old", TRACE)):
        during = waiting_of(folder, "old", None, Seen(None))
    waiting = waiting_of(folder, "old", None, Seen(None))

    assert (during.state, during.printed) == (State("elsewhere"), "")
    assert (waiting.state, waiting.began, waiting.printed) == (State("over"), False, "Error: the plugin broke")
    assert waiting.command.startswith("devhost chat --example order_entry ")


def test_after_an_answer_that_the_script_does_not_have_its_next_words_are_no_question() -> None:
    setup = Setup(values={"plugin": str(ROOT), "source": "example:injection/mail", "strategy": "gpt5_react"})
    asked, no, question = "Confirm the choir's booking.", "no, mention the piano too", State("question")

    assert suggestion(setup, [asked], State("approval")) == no
    assert suggestion(setup, [asked, no], question) == "yes"
    assert suggestion(setup, [asked, "no"], State("approval")) == "yes"
    assert suggestion(setup, [asked, "no"], question) == ""


def test_of_what_a_plugin_prints_without_end_only_the_last_is_read(tmp_path: Path) -> None:
    file = tmp_path / "run.output.txt"
    assert not last_printed(file)

    file.write_text("first\n" + "\x1b[31mé\x1b[0m" * MOST_BYTES + "\nlast\x07\n")

    shown = last_printed(file)
    assert shown.endswith("é\nlast")
    assert "first" not in shown
    assert len(shown) <= MOST_BYTES

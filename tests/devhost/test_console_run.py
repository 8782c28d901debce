"""A run's page: what it shows while the run goes on, what an opened row holds, and what the run waits for."""

import fcntl
import json
import re
from pathlib import Path
from typing import Any

import pytest

from devhost import FunctionTool, Host, NodeOutputs, Run, RunError, ScriptedModel
from devhost.chat import YES
from devhost.console.conversation import ConversationState, rejected, said, state_of, suggestion, waiting_of
from devhost.console.folder import OUTPUT, TRACE, RunFolder
from devhost.console.readers import ReadTrace
from devhost.console.setup import SETUP, Setup
from devhost.node.outputs.run import CallsMade
from support.console import ConsoleClient
from support.tracing import tracing
from tests.devhost import ROOT

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"


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


def test_a_page_is_sent_again_only_when_it_has_changed(console: ConsoleClient, whole: bytes, file: Path) -> None:
    lines = whole.splitlines(keepends=True)
    file.write_bytes(b"".join(lines[: len(lines) // 2]))
    page = console.get("/runs/run")
    (address,) = re.findall(r'hx-get="(/runs/run\?seen=[^"]+)"', page)
    assert "ROUND 3" not in page
    assert console.get(address, 204) == ""

    file.write_bytes(whole)

    page = console.get(address)
    assert "ROUND 3" in page
    assert '<dt>Outcome</dt><dd class="good">finished</dd>' in page
    assert "Run again with a change" in page


def test_a_run_is_running_until_no_process_writes_its_trace(console: ConsoleClient, whole: bytes, file: Path) -> None:
    lines = whole.splitlines(keepends=True)
    with file.open("wb") as written:
        fcntl.flock(written, fcntl.LOCK_EX)  # as the process that writes a trace holds it
        written.writelines(lines[: len(lines) // 2])
        written.flush()
        during = console.get("/runs/run")
    after = console.get("/runs/run")

    assert "<dd>running</dd>" in during
    assert "TraceEndsError" not in during
    assert "The run goes on in a process that this console did not start" in during
    assert '<dd class="bad">not ended</dd>' in after
    assert "TraceEndsError" in after
    assert "The run has ended." in after


def test_a_file_that_is_not_a_trace_is_a_page_that_says_so_and_of_a_broken_one_the_rest_is_shown(
    console: ConsoleClient, whole: bytes, file: Path
) -> None:
    file.write_text("{}\n")
    assert "not a trace of devhost" in console.get("/runs/run", 400)

    for beside, text in ((TRACE, ""), (SETUP, '{"kind": "chat", "gone": 1}')):
        file.with_name(f"other{beside}").write_text(text)
        assert "other" in console.get("/runs/other")
        file.with_name(f"other{beside}").unlink()

    begin, asked, _, *rest = whole.splitlines(keepends=True)
    file.write_bytes(b"".join([begin, asked, b"{}\n", *rest]))
    page = console.get("/runs/run")
    assert "line 3: not a line of a trace" in page
    assert '<dt>Outcome</dt><dd class="good">finished</dd>' in page


# --- rows -------------------------------------------------------------------------------------------------------------


def anchors(console: ConsoleClient) -> dict[str, str]:
    """Of rows, by their labels; the last one of a label."""
    ((shown,),) = [turn.runs for turn in console.console.seen("first").turns]
    return {span.label: shown.anchor(span) for span in shown.rows}


def test_the_page_has_everything_but_what_rows_hold(console: ConsoleClient) -> None:
    page = console.get("/runs/first")

    assert len(re.findall(r'<section class="inside" [^>]*></section>', page)) == page.count('class="inside"') > 3
    assert "ROUND 3" in page
    assert HOSTILE not in page
    assert len(page) < 60_000


def test_a_row_is_loaded_when_it_is_opened(console: ConsoleClient) -> None:
    inside = console.get(f"/runs/first/rows/{anchors(console)['CALL look']}")

    assert "<h3>Arguments</h3>" in inside
    assert HOSTILE not in inside
    assert "&lt;script&gt;" in inside
    assert "more characters in the trace" in inside
    console.get("/runs/first/rows/row-1-none", 404)


# --- what a conversation waits for ------------------------------------------------------------------------------------

CALL = {"id": "call_1", "tool": "draw", "arguments": {"what": "a cat"}}
FAILED = RunError("ValueError", "broke")


def turn(*pending: object, error: RunError | None = None, **asked: int) -> Run:
    variables = {"state": "kept", "pending_calls": list(pending)}
    outputs = NodeOutputs("", [], [], {}, variables, [], 0)
    return Run("puppet", outputs, error, [], [], 0.0, CallsMade(asked))


@pytest.mark.parametrize(
    ("ended", "asked", "expected"),
    [
        ([], None, ConversationState("over")),
        ([turn(CALL)], None, ConversationState("over")),
        ([], 1, ConversationState("running")),
        ([turn()], 2, ConversationState("running")),
        ([], 0, ConversationState("question")),
        ([turn()], 1, ConversationState("question")),
        ([turn(), turn(CALL)], 2, ConversationState("approval", (CALL,))),
        ([turn(CALL), turn()], 2, ConversationState("question")),
        ([turn(CALL), turn(error=FAILED, llm=1)], 2, ConversationState("approval", (CALL,))),
        ([turn(CALL), turn(error=FAILED, tool=1)], 2, ConversationState("question")),
    ],
)
def test_the_state_follows_from_the_turns_and_the_child(
    ended: list[Run], asked: int | None, expected: ConversationState
) -> None:
    assert state_of([[run] for run in ended], asked) == expected


def test_a_command_that_reads_no_questions_waits_for_none() -> None:
    assert state_of([[turn()]], 0, converses=False) == ConversationState("running")


def test_no_words_are_a_command_of_the_chat() -> None:
    assert json.loads(said("/reset now")) == " /reset now"
    assert json.loads(said("two\nlines")) == "two\nlines"
    assert "\n" not in said("two\nlines")
    lines = (said(YES), rejected("ok"), rejected(""), rejected("No, later"), rejected("nothing wrong"))
    assert [json.loads(line) for line in lines] == ["yes", "no: ok", "no", "No, later", "no: nothing wrong"]


def test_a_run_of_another_console_is_over_and_says_what_it_printed_without_colours(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    values = {"plugin": str(ROOT), "source": "example:order_entry/approved", "strategy": "gpt5_react"}
    Setup(values=values).write(folder.beside("old", SETUP))
    folder.beside("old", OUTPUT).write_text("\x1b[31mError: the plugin\x1b[0m\x07 broke\n")

    with tracing(folder.beside("old", TRACE)):
        during = waiting_of(folder, "old", None, ReadTrace(None))
    waiting = waiting_of(folder, "old", None, ReadTrace(None))

    assert (during.state, during.printed) == (ConversationState("elsewhere"), "")
    assert (waiting.state, waiting.printed) == (ConversationState("over"), "Error: the plugin broke")
    assert waiting.command.startswith("devhost chat --example order_entry ")


def test_after_an_answer_that_the_script_does_not_have_its_next_words_are_no_question() -> None:
    setup = Setup(values={"plugin": str(ROOT), "source": "example:injection/mail", "strategy": "gpt5_react"})
    asked = "Confirm the choir's booking."
    no = "no, mention the piano too"
    question = ConversationState("question")

    assert suggestion(setup, [asked], ConversationState("approval")) == no
    assert suggestion(setup, [asked, no], question) == "yes"
    assert suggestion(setup, [asked, "no"], ConversationState("approval")) == "yes"
    assert suggestion(setup, [asked, "no"], question) == ""

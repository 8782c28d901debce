"""`devhost fork`: a traced run from a round on, with something changed, beside the run that it was made of."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devhost.cli.commands import main
from devhost.comparison.comparison import rows
from devhost.trace.lines import read_trace
from devhost.trace.runs import traced_runs
from fake_openai import KEY, FakeOpenAI, Turn
from support.page_reading import VILE, harmless
from support.plugins import PUPPET
from tests.devhost.test_recording import refusal, script

SEARCH = {"terms": "invoices", "language": "en"}
KNOWN = {"terms": "backup notification arrive", "language": "en"}
LATER = [
    {
        "tool_calls": [
            {"name": "search_manual", "id": "new", "arguments": SEARCH},
            {"name": "search_manual", "id": "old", "arguments": KNOWN},
        ]
    },
    {"text": "**Two-factor login with an app**\n\nShort."},
]
type Fork = Callable[..., dict[str, Any]]

pytestmark = pytest.mark.usefixtures("without_pauses", "lent_plugins")


@pytest.fixture
def trace(help_desk: Path) -> Path:
    return help_desk


@pytest.fixture
def fork(capsys: pytest.CaptureFixture[str]) -> Fork:
    """A command's `--json`."""

    def fork(*arguments: str | Path, code: int = 0) -> dict[str, Any]:
        capsys.readouterr()
        assert main(["fork", *map(str, arguments), "--json", "--no-color"]) == code, capsys.readouterr().err
        told: dict[str, Any] = json.loads(capsys.readouterr().out)
        return told

    return fork


def fact(told: dict[str, Any], name: str) -> tuple[str, str]:
    pair = told["differences"]["facts"][name]
    return pair["left"], pair["right"]


def differing(told: dict[str, Any]) -> list[str]:
    return [name for name, each in told["differences"]["facts"].items() if each["differs"]]


def test_without_a_round_the_rounds_are_listed(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["fork", str(trace)]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == ["1  calls search_manual, search_manual", "2  answers"]


def test_a_changed_instruction_is_marked_in_the_prompt_and_the_rest_is_as_recorded(
    trace: Path, fork: Fork, capsys: pytest.CaptureFixture[str]
) -> None:
    change = ("--at", "1", "--instruction", "Answer in one sentence.")
    assert main(["fork", str(trace), *change]) == 0
    assert "the same: the model's turns are recorded. A real model shows" in capsys.readouterr().out
    told = fork(trace, *change)

    (prompt,) = told["differences"]["prompts"]
    (changed,) = [row for row in prompt["rows"] if row["kind"] == "changed"]
    assert (prompt["round"], changed["right"]) == (1, "Answer in one sentence.")
    assert (told["differences"]["answer"], differing(told), told["not_recorded"]) == ([], [], [])
    assert fact(told, "prompt tokens")[1] == "as recorded", "the model did not read the changed prompt"
    assert {row["kind"] for row in told["differences"]["calls"]} == {"same"}


def test_a_call_that_is_not_in_the_recording_says_so_and_the_run_goes_on(
    trace: Path, tmp_path: Path, fork: Fork
) -> None:
    later = script(tmp_path / "later.yaml", turns=LATER)

    told = fork(trace, "--at", "1", "--script", later)

    assert told["run"]["text"].endswith("Short.")
    assert told["not_recorded"] == [f"search_manual {json.dumps(SEARCH, sort_keys=True)} → NotRecordedError"]
    assert [row["kind"] for row in told["differences"]["calls"]] == ["same", "same", "right", "right"]
    assert fact(told, "tool calls") == ("2", "4")
    assert fact(told, "model calls") == ("2", "3")
    assert {"tool calls", "model calls"} <= set(differing(told))
    first, *_ = told["differences"]["answer"]
    assert (first["kind"], first["left"]) == ("changed", "**Two-factor login with an authenticator app**")


def test_live_tools_run_after_the_past_alone(trace: Path, tmp_path: Path, fork: Fork) -> None:
    later = script(tmp_path / "later.yaml", turns=LATER)
    kept = tmp_path / "new.jsonl"

    told = fork(trace, "--at", "1", "--script", later, "--live-tools", "--trace", kept)

    assert told["not_recorded"] == []
    assert kept.read_text().count('"action": "invoke_tool"') == 2


def test_a_real_model_goes_on_with_what_was_recorded(trace: Path, fork: Fork, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeOpenAI() as fake:
        fake.will(Turn(text="Done by another model."))
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", fake.base_url)
        told = fork(trace, "--at", "1", "--model", "gpt-5", "--api", "chat", "--param", "instruction=Be brief.")
        ((_, request),) = fake.requests

    assert told["run"]["text"] == "Done by another model."
    assert fact(told, "model") == ("scripted-gpt-5", "gpt-5")
    system, *_ = request["messages"]
    assert system["content"].startswith("Be brief.")
    assert [message["role"] for message in request["messages"]][-3:] == ["assistant", "tool", "tool"]
    assert "authenticator" in request["messages"][-2]["content"]


def test_keeping_every_round_says_that_no_answer_changes(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sentence = "The run has 2 rounds, and --at 2 keeps them all. Another answer needs --at 1 or lower"
    for at, told in (("1", 0), ("2", 1)):
        assert main(["fork", str(trace), "--at", at, "--no-color"]) == 0
        assert capsys.readouterr().out.count(sentence) == told


def test_a_model_that_asks_beyond_the_recording_fails_and_says_what_would_help(trace: Path, fork: Fork) -> None:
    told = fork(trace, "--at", "2", "--param", 'answer_schema={"type": "object"}', code=1)
    assert "the recording has no turn for model call 3: give --script FILE" in told["run"]["error"]["message"]


def test_a_question_of_a_conversation_keeps_its_history_and_state(
    tmp_path: Path, fork: Fork, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = tmp_path / "run.jsonl"
    kept = tmp_path / "new.jsonl"
    monkeypatch.setenv("OFFICE_DIRECTORY", str(tmp_path))
    assert main(["run", "--example", "injection", "--scenario", "mail", "--trace", str(trace)]) == 0

    told = fork(trace, "--at", "0", "--trace", kept)

    before, after = (traced_runs(read_trace(file))[-1].parameters for file in (trace, kept))
    assert after == before
    assert before["model"]["history_prompt_messages"]
    assert (told["question"], told["differences"]["answer"], differing(told)) == ("yes", [], [])
    assert fork(trace, "--at", "1", "--question", "1")["question"] == "Confirm the choir's booking."
    assert numbered(trace, fork, "--question", "2") == "Message 2 of the conversation"
    assert numbered(trace, fork) == "Message 3 of the conversation"
    assert main(["fork", str(trace)]) == 0
    assert "forking the last of 3 questions; --question NUMBER names another one" in capsys.readouterr().err


def numbered(trace: Path, fork: Fork, *which: str) -> str:
    """What the model reads of the number that a chatflow has for the message."""
    told = fork(trace, "--at", "0", *which, "--instruction", "Message {{#sys.dialogue_count#}} of the conversation")
    rows = [row for prompt in told["differences"]["prompts"] for row in prompt["rows"]]
    (read,) = {row["right"] for row in rows if "of the conversation" in str(row["right"])}
    return str(read)


def test_files_go_with_the_question_again(tmp_path: Path, fork: Fork) -> None:
    letter = tmp_path / "letter.txt"
    letter.write_text("Dear all")
    steps = [{"show_parameters": None}, {"ask": "and?"}]
    asked = script(tmp_path / "s.yaml", query=json.dumps(steps), files=["letter.txt"], turns=[{"text": "Yes."}])
    trace = tmp_path / "run.jsonl"
    assert main(["run", "--plugin", str(PUPPET), "--script", str(asked), "--trace", str(trace)]) == 0
    puppet: list[str | Path] = ["--plugin", PUPPET, "--at", "1"]

    (file,) = fork(trace, *puppet)["run"]["variables"]["parameters"]["files"]
    assert (file["filename"], file["size"]) == ("letter.txt", 8)


def test_a_run_that_was_killed_can_be_forked_with_another_question(
    trace: Path, tmp_path: Path, fork: Fork, capsys: pytest.CaptureFixture[str]
) -> None:
    killed = tmp_path / "killed.jsonl"
    lines = trace.read_text().splitlines(keepends=True)
    killed.write_text("".join(line for line in lines if '"event": "end", "session_id"' not in line))

    told = fork(killed, "--at", "0", "--param", "query=Why?")

    assert fact(told, "ended")[0].startswith("not ended: TraceEndsError")
    assert fact(told, "ended")[1] == "finished"
    assert told["changed"] == ["query=Why?"]
    assert "Why?" in [row["right"] for row in told["differences"]["prompts"][0]["rows"]]

    killed.write_text("".join(lines[:2]))
    assert main(["fork", str(killed)]) == 0
    assert "No model call is recorded; --at 0 asks the model from the beginning" in capsys.readouterr().out
    assert "the model answered 0 times: --at 0" in refusal(["fork", killed, "--at", "1"], capsys)


def test_the_page_and_the_terminal_show_both_runs(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    vile = {"name": "search_manual", "id": "v", "arguments": {"terms": VILE, "language": "en"}}
    later = script(tmp_path / "later.yaml", turns=[{"tool_calls": [vile]}, {"text": f"Say {VILE}"}])
    page = tmp_path / "fork.html"
    arguments = ["--at", "1", "--script", str(later), "--param", f"instruction={VILE}", "--report", str(page)]
    capsys.readouterr()

    assert main(["fork", str(trace), *arguments, "--no-color"]) == 0

    shown = capsys.readouterr().out
    for words in ("changed after round 1", "≠  model calls", "−  You answer", "prompt of round 3", "1 × search_manual"):
        assert words in shown, words
    read = harmless(page.read_text())
    for words in (VILE, "Calls that are not in the recording: 1 × search_manual", "completion tokens"):
        assert words in read.text, words


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--at", "7"], "the model answered 2 times: --at 0 asks it from the beginning"),
        (["--at", "0", "--question", "3"], "there is no such question in"),
        (["--at", "1", "--param", "nope=1"], "there is no parameter 'nope'"),
        (["--at", "1", "--tools", str(PUPPET)], "--tools is for tools that run"),
        (["--at", "1", "--report", "TRACE"], "is the trace itself"),
    ],
)
def test_mistakes_are_one_sentence(
    arguments: list[str], sentence: str, trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    given = [str(trace) if each == "TRACE" else each for each in arguments]
    assert sentence in refusal(["fork", trace, *given], capsys)


LINES = st.lists(st.sampled_from(["a", "b", "the same words here", "the same words there", ""]), max_size=8)


@given(left=LINES, right=LINES)
def test_rows_lose_no_line_of_either_side(left: list[str], right: list[str]) -> None:
    found = rows(left, right, whole=True)
    assert [row.left for row in found if row.kind != "right"] == left
    assert [row.right for row in found if row.kind != "left"] == right
    assert bool(rows(left, right)) == (left != right)

"""`devhost record` of a flow: a case without tools and models of its own, which is played as its trace was."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from devhost.cli.commands import main
from devhost.recording.turns import tool_calls
from devhost.trace.lines import read_trace
from devhost.trace.turns import TracedTurn, traced_turns
from support.console import ConsoleClient
from support.flow_documents import (
    START,
    Edge,
    answer,
    chain,
    chatflow,
    classifier,
    extractor,
    knowledge,
    llm,
    mixed,
    node,
    start,
    tool,
)
from tests.flows.conftest import FIXTURES
from tests.flows.playing import WORKFLOWS
from tests.flows.test_human_input import EDGES, NODES

type Play = Callable[..., list[TracedTurn]]


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
    """Plays a script; out: the turns in the trace."""
    monkeypatch.setenv("OFFICE_DIRECTORY", str(tmp_path))

    def play(script: Path, trace: str, *options: str, code: int = 0) -> list[TracedTurn]:
        file = tmp_path / trace
        assert main(["flow", "--script", str(script), "--trace", str(file), "--allow-code", *options]) == code
        return traced_turns(read_trace(file))

    return play


def record(trace: Path, case: Path, capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], str]:
    """The case, and what was said not to be in it."""
    capsys.readouterr()
    assert main(["record", str(trace), "-o", str(case)]) == 0, capsys.readouterr().err
    written = case.read_text("utf-8")
    assert ": null\n" not in written
    return yaml.safe_load(written), capsys.readouterr().err


def course(turns: list[TracedTurn]) -> list[object]:
    """All but times, and the state, which has times in it."""
    return [
        (
            turn.facts.query,
            turn.ended and (turn.ended.status, turn.ended.outputs, turn.ended.error),
            [row.node for row in turn.rows.values()],
            [
                (call.name, call.arguments, [piece.data for piece in call.pieces], call.error)
                for runs in turn.agents.values()
                for run in runs
                for call in tool_calls(run.calls)
            ],
        )
        for turn in turns
    ]


@pytest.mark.parametrize("example", ["approval", "approval_form"])
def test_a_conversation_with_an_approval_is_played_as_it_was(
    example: str, tmp_path: Path, play: Play, capsys: pytest.CaptureFixture[str]
) -> None:
    first = play(WORKFLOWS / "cases" / f"{example}.yaml", "run.jsonl")
    case = tmp_path / "case.yaml"
    script, lacks = record(tmp_path / "run.jsonl", case, capsys)

    assert lacks == ""
    assert not Path(script["flow"]).is_absolute()
    assert (tmp_path / script["flow"]).resolve() == (WORKFLOWS / f"{example}.yml").resolve()
    assert course(play(case, "again.jsonl")) == course(first)
    expected = [turn["expect"] for turn in (script, *script["then"])]
    assert [each["answer"] for each in expected] == [turn.ended and turn.ended.outputs["answer"] for turn in first]
    assert expected[1]["nodes"]["agent"] == {"calls": {"exactly": []}, "outputs": {"stop_reason": "approval_required"}}


def test_an_agent_of_a_turn_is_forked(tmp_path: Path, play: Play, capsys: pytest.CaptureFixture[str]) -> None:
    play(WORKFLOWS / "cases" / "approval_form.yaml", "run.jsonl")
    trace = str(tmp_path / "run.jsonl")
    capsys.readouterr()

    assert main(["fork", trace, "--question", "2"]) == 0
    said = capsys.readouterr()
    where = "forking the agent agent_again in turn 2, without the flow around it; --question NUMBER and --node ID"
    assert said.err.startswith(where)
    assert said.out.splitlines()[0] == "1  answers"
    assert main(["fork", trace, "--question", "2", "--node", "agent", "--at", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["run"]["variables"]["stop_reason"] == "approval_required"
    assert not told["differences"]["facts"]["model"]["differs"], "nobody changed it"
    assert main(["fork", trace, "--question", "1", "--node", "agent_again"]) == 2
    assert "has no such run of an agent; there are: agent in turn 1, " in capsys.readouterr().err
    assert main(["fork", trace, "--at", "0", "--live-tools"]) == 2
    assert "so say which tools: --tools DIR" in capsys.readouterr().err


def test_a_recorded_case_fails_where_the_flow_goes_another_way(
    tmp_path: Path, play: Play, capsys: pytest.CaptureFixture[str]
) -> None:
    play(WORKFLOWS / "cases" / "approval.yaml", "run.jsonl")
    case = tmp_path / "case.yaml"
    script, _ = record(tmp_path / "run.jsonl", case, capsys)
    script["then"][2]["query"] = "no"
    case.write_text(yaml.safe_dump(script), "utf-8")

    play(case, "again.jsonl", code=1)

    assert "turn 4 (no): node 'Agent' (agent): calls exactly: expected send_mail(" in capsys.readouterr().out


def test_every_node_that_asks_a_service_answers_as_it_did(
    tmp_path: Path, play: Play, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [{"content": "The fair is in May.", "title": "Plan", "score": 0.9}, "It lasts a week."]
    says = node(
        "code",
        "code",
        code="def main(): return {'said': 'x'}",
        code_language="python3",
        variables=[],
        outputs={"said": {"type": "string", "children": None}},
    )
    default: dict[str, Any] = {
        "error_strategy": "default-value",
        "default_value": [{"key": "text", "type": "string", "value": "?"}],
    }
    fails = tool("oddments", "perform", steps=mixed('[["nonsense", 1]]'))
    names = ["sort", "extract", "find", "ask", "send", "fails", "code"]
    file = chatflow(
        tmp_path,
        [
            start("word"),
            classifier("sort", "events", "else"),
            extractor("extract", {"day": "string"}),
            knowledge("find"),
            llm("ask", **default),
            tool("oddments", "perform", steps=mixed('[["say", "sent"]]')) | {"id": "send"},
            fails | {"id": "fails", "data": {**fails["data"], **default}},
            says,
            answer("{{#extract.day#}} {{#ask.text#}} {{#send.text#}} {{#start.word#}}"),
        ],
        [("start", "sort"), ("sort", "extract", "1"), *chain(*names[1:], "answer")],
    )
    script: dict[str, Any] = {
        "flow": file.name,
        "tools": [str(FIXTURES / "oddments")],
        "inputs": {"word": "really"},
        "query": "When is the fair?",
        "knowledge": {"find": found},
        "models": {
            "sort": [{"text": '{"category_id": "1", "category_name": "events"}'}],
            "extract": [{"tool_calls": [{"name": "extract_parameters", "id": "c", "arguments": {"day": "Monday"}}]}],
            "ask": [{"error": {"type": "InvokeRateLimitError", "message": "slow down"}}],
        },
    }
    later = {**script["models"], "ask": [{"thought": "Hm.", "text": "In June."}]}
    script["then"] = [{"query": "And the other?", "knowledge": {"find": []}, "models": later}]
    written = tmp_path / "script.yaml"
    written.write_text(yaml.safe_dump(script), "utf-8")
    first = play(written, "run.jsonl")
    case = tmp_path / "case.yaml"

    recorded, lacks = record(tmp_path / "run.jsonl", case, capsys)

    assert lacks == ""
    assert "tools" not in recorded
    assert recorded["inputs"] == {"word": "really"}
    assert recorded["knowledge"] == {"find": [found[0], {"content": "It lasts a week."}]}
    again = play(case, "again.jsonl")
    assert course(again) == course(first)
    assert [turn.ended and turn.ended.outputs["answer"] for turn in again] == [
        "Monday ? sent really",
        "Monday <think>\nHm.\n</think>\n\nIn June. sent really",
    ]


def test_files_and_forms_are_recorded(tmp_path: Path, play: Play, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "letter.txt").write_text("Dear all")
    flow = chatflow(tmp_path, NODES, EDGES)
    script = {
        "flow": flow.name,
        "query": "it",
        "files": ["letter.txt"],
        "answers": {"form": "ok", "form.when": "later", "form.reason": "because"},
        "then": [{"query": "more", "answers": {"form": "timeout"}}],
    }
    written = tmp_path / "script.yaml"
    written.write_text(yaml.safe_dump(script), "utf-8")
    first = play(written, "run.jsonl")
    (tmp_path / "letter.txt").unlink()

    recorded, lacks = record(tmp_path / "run.jsonl", tmp_path / "case.yaml", capsys)

    assert lacks == ""
    assert recorded["files"] == ["case.files/letter.txt"]
    assert [recorded["answers"], recorded["then"][0]["answers"]] == [script["answers"], {"form": "timeout"}]
    assert course(play(tmp_path / "case.yaml", "again.jsonl")) == course(first)


def test_what_cannot_be_recorded_is_said(tmp_path: Path, play: Play, capsys: pytest.CaptureFixture[str]) -> None:
    def written(name: str) -> Path:
        edges: list[Edge] = chain("start", name, "answer")
        return chatflow(tmp_path, [START, llm(name), answer("{{#" + name + ".text#}}")], edges)

    script = tmp_path / "script.yaml"
    script.write_text(json.dumps({"flow": written("ask").name, "query": "?", "models": {"ask": [{"text": "!"}]}}))
    play(script, "run.jsonl")
    trace = tmp_path / "run.jsonl"
    written("other")
    assert main(["record", str(trace)]) == 2
    assert "has no node ask any more: it was changed after the trace" in capsys.readouterr().err

    trace.write_text(trace.read_text().splitlines(keepends=True)[0])
    assert main(["record", str(trace)]) == 2
    assert "cannot be recorded: a case needs a turn that ended" in capsys.readouterr().err


def test_the_console_keeps_a_flow_as_a_case_that_passes(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = chatflow(tmp_path, [START, answer("You said {{#sys.query#}}.")], chain("start", "answer"))
    script = tmp_path / "script.yaml"
    script.write_text(yaml.safe_dump({"flow": flow.name, "query": "Hi", "then": [{"query": "Again"}]}))
    play(script, "run.jsonl")
    monkeypatch.chdir(tmp_path)

    ConsoleClient(tmp_path).post("/runs/run/keep", name="kept", file="cases.yaml")

    assert yaml.safe_load(Path("cases.yaml").read_text())["cases"] == ["kept.case.yaml"]
    assert main(["eval", "cases.yaml", "--scripted"]) == 0

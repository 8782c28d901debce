"""A script that names its flow is a case: played without FILE, with a sentence for each expectation that fails."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from devhost.cli.commands import main
from devhost.flow.cases import failed_expectations
from devhost.host.host import Host
from devhost.trace.lines import read_trace
from support.flow_documents import START, answer, chain, chatflow, llm
from tests.flows.playing import WORKFLOWS

type Write = Callable[..., Path]
SAYS = {"ask": [{"text": "Two."}]}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a case beside a chatflow that asks a model."""
    chatflow(tmp_path, [START, llm("ask"), answer("{{#ask.text#}}")], chain("start", "ask", "answer"))

    def written(**script: Any) -> Path:  # noqa: ANN401 - plain data
        file = tmp_path / "case.yaml"
        file.write_text(yaml.safe_dump({"flow": "flow.yml", "query": "How many?", "models": SAYS, **script}), "utf-8")
        return file

    return written


def test_a_case_needs_no_file(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    case = write(expect={"answer": "Two."}, then=[{"query": "And?", "models": SAYS, "expect": {"ran": "Ask"}}])

    assert main(["flow", "--script", str(case)]) == 0
    said = capsys.readouterr().out
    assert said.count("every expectation fits") == 2
    assert said.endswith("\nall 2 turns passed\n")


def test_an_expectation_that_fails_is_told_and_ends_the_command_with_1(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "trace.jsonl"
    expect = {"answer": "Three.", "nodes": {"ask": {"outputs": {"text": {"lacks": "Two"}}}}}
    case = write(expect={}, then=[{"query": "And?", "models": SAYS, "expect": expect}])
    sentences = [
        "turn 2 (And?): answer equals: expected Three.; found Two.",
        "turn 2 (And?): node 'Ask' (ask): output text lacks: expected Two; found Two.",
    ]

    assert main(["flow", "--script", str(case), "--trace", str(trace)]) == 1
    told = ["expectations that failed: 2", *sentences]
    assert "\n".join([*told, "1 of 2 turns failed"]) in capsys.readouterr().out
    assert main(["replay", str(trace)]) == 0
    assert capsys.readouterr().out.endswith("\n".join([*told, ""]))
    assert read_trace(trace).header.model.notice.startswith("scripted model: ")
    assert main(["flow", "--script", str(case), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["failed_expectations"] == sentences
    assert report["earlier_turns"][0]["failed_expectations"] == []
    assert failed_expectations(case) == sentences


def test_a_turn_has_to_succeed_unless_something_else_is_expected(write: Write) -> None:
    failing = {"ask": [{"error": {"type": "InvokeAuthorizationError", "message": "no such key"}}]}

    assert main(["flow", "--script", str(write(models=failing))]) == 1
    (sentence,) = failed_expectations(write(models=failing))
    assert sentence.startswith("turn 1 (How many?): status: expected succeeded or partial-succeeded; found failed (")
    expect = {"status": "failed", "error": {"contains": "no such key"}, "not_run": "answer"}
    assert main(["flow", "--script", str(write(models=failing, expect=expect))]) == 0


def test_several_cases_share_a_host(office: Host) -> None:
    for _ in range(2):
        assert failed_expectations(WORKFLOWS / "cases" / "approval.yaml", office) == []

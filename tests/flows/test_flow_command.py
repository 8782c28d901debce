"""The options of `devhost flow` reach the plugins that it starts."""

import io
import json
import sys
from pathlib import Path

import pytest

from devhost.cli.commands import main
from devhost.flow.cases import failed_expectations
from support.flow_documents import START, answer, chain, chatflow, end, node, start, tool, workflow
from tests.flows.conftest import FIXTURES

TOKEN = "tk-environment-12345"


def test_what_plugins_store_is_kept_in_the_file_of_storage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    storage = tmp_path / "kept.json"

    def outputs_after(*step: object) -> str:
        perform = tool("oddments", "perform", steps={"type": "constant", "value": json.dumps([step])})
        nodes = [start(), perform, answer("{{#perform.text#}}")]
        file = chatflow(tmp_path, nodes, chain("start", "perform", "answer"))
        asked = ["flow", str(file), "--query", "go", "--tools", str(FIXTURES / "oddments"), "--storage", str(storage)]
        assert main([*asked, "--json"]) == 0
        return str(json.loads(capsys.readouterr().out)["nodes"][1]["outputs"])

    outputs_after("set", ["colour", "blue"])
    assert "blue" in outputs_after("get", "colour")
    assert storage.is_file()


@pytest.fixture
def with_a_token(tmp_path: Path) -> Path:
    """A chatflow that puts a secret environment variable into a template, its answer and a conversation variable."""
    fill = node(
        "template-transform",
        "fill",
        template="key={{ key }}",
        variables=[{"variable": "key", "value_selector": ["env", "TOKEN"]}],
    )
    kept = {"variable_selector": ["conversation", "seen"], "input_type": "variable", "operation": "over-write"}
    keep = node("assigner", "keep", version="2", items=[{**kept, "value": ["fill", "output"]}])
    return chatflow(
        tmp_path,
        [START, fill, keep, answer("The {{#fill.output#}}.")],
        chain("start", "fill", "keep", "answer"),
        environment_variables=[{"id": "1", "name": "TOKEN", "value_type": "secret", "value": TOKEN}],
        conversation_variables=[{"id": "2", "name": "seen", "value_type": "string", "value": ""}],
    )


def test_a_secret_environment_variable_is_not_shown(with_a_token: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["flow", str(with_a_token), "--query", "go", "--json", "--verbose"]) == 0
    said = capsys.readouterr()

    assert TOKEN not in said.out + said.err
    assert json.loads(said.out)["outputs"]["answer"] == "The key=[secret]."
    assert "The key=[secret]." in said.err


def test_a_chat_does_not_show_a_secret_environment_variable(
    with_a_token: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"go\n/variables\n/log\n")))

    assert main(["flow", "chat", str(with_a_token)]) == 0
    shown = capsys.readouterr().out

    assert TOKEN not in shown
    assert shown.count("key=[secret]") >= 3  # the answer, the variable and the node's row


def test_a_failed_expectation_does_not_show_a_secret_environment_variable(with_a_token: Path, tmp_path: Path) -> None:
    case = tmp_path / "case.yaml"
    case.write_text(json.dumps({"flow": with_a_token.name, "query": "go", "expect": {"answer": "nothing"}}))

    (sentence,) = failed_expectations(case)

    assert "The key=[secret]." in sentence


def test_a_workflow_takes_no_question(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = workflow(tmp_path, [start("word"), end(said="start.word")], chain("start", "end"))

    assert main(["flow", str(file), "--query", "Hello"]) == 2
    assert "is a workflow and takes no question: give it --input KEY=VALUE" in capsys.readouterr().err

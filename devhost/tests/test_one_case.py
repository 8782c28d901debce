"""A script of a strategy is a case whose turn has one node: what it can expect, and which tools it names."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from devhost.cli.commands import main
from devhost.errors import ScriptError
from devhost.protocol.wire import JsonObject
from devhost.script import Script
from support.plugins import FIXTURES, PUPPET, TOOLBOX

pytestmark = pytest.mark.usefixtures("lent_plugins")

DRAW: JsonObject = {
    "call": {"provider": "devhost-tests/toolbox/toolbox", "tool_name": "draw", "parameters": {"what": "a cat"}}
}
REPEAT: JsonObject = {
    "call": {"provider": "devhost-tests/toolbox/toolbox", "tool_name": "repeat", "parameters": {"word": "ho"}}
}


def written(folder: Path, *steps: JsonObject, **keys: object) -> Path:
    file = folder / "case.yaml"
    script = {"query": json.dumps(steps), "turns": [{"text": "unused"}], **keys}
    file.write_text(yaml.safe_dump(script), encoding="utf-8")
    return file


def run(file: Path, *arguments: str) -> int:
    return main(["run", "--plugin", str(PUPPET), "--script", str(file), "--json", *arguments])


def failed(capsys: pytest.CaptureFixture[str]) -> Any:  # noqa: ANN401 - JSON
    return json.loads(capsys.readouterr().out)["failed_expectations"]


def test_a_strategy_is_the_node_agent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    say = {"say": "Two."}
    fits = {"status": "succeeded", "answer": "Two.", "ran": "agent", "nodes": {"agent": {"text": "Two.", "calls": 0}}}
    assert run(written(tmp_path, say, expect=fits)) == 0
    assert failed(capsys) == []

    wrong = {"nodes": {"agent": {"outputs": {"text": "Three."}}}}
    assert run(written(tmp_path, say, expect=wrong)) == 1
    assert failed(capsys) == ["node 'puppet' (agent): output text equals: expected Three.; found Two."]


def test_a_node_that_there_is_not_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(written(tmp_path, expect={"ran": "agnet"})) == 2
    assert "turn 1: expect: ran: no node is 'agnet'" in capsys.readouterr().err


def test_each_turn_of_a_script_can_expect_something(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = json.dumps([{"say": "Three."}])
    then = [{"query": query, "turns": [{"text": "unused"}], "expect": {"text": "Two."}}]
    assert run(written(tmp_path, {"say": "One."}, then=then)) == 1
    assert failed(capsys) == [f"turn 2 ({query}): text equals: expected Two.; found Three."]


@pytest.mark.parametrize("named", [{"tools": [str(TOOLBOX)]}, {"example": "toolbox"}], ids=["a folder", "an example"])
def test_a_script_names_its_tools(tmp_path: Path, capsys: pytest.CaptureFixture[str], named: dict[str, object]) -> None:
    file = written(tmp_path, REPEAT, expect={"calls": {"exactly": [{"repeat": {"word": "ho"}}]}}, **named)
    assert run(file, "--examples", str(FIXTURES)) == 0, capsys.readouterr().err


@pytest.mark.parametrize(("steps", "code"), [((DRAW,), 1), ((DRAW, REPEAT), 0), ((), 0)])
def test_strict_calls_fail_a_turn_whose_calls_all_failed(
    tmp_path: Path, steps: tuple[JsonObject, ...], code: int
) -> None:
    file = written(tmp_path, *steps, tools=[str(TOOLBOX)])
    assert run(file) == 0
    assert run(file, "--strict-calls") == code


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"inputs": {"a": 1}}, "inputs: only the script of a flow has this key: play a flow with devhost flow"),
        (
            {"then": [{"query": "?", "turns": [{"text": "x"}], "models": {}}]},
            r"then\[0\]\.models: only the script of a flow has this key",
        ),
        ({"then": [{"query": "?"}]}, r"then\[0\]\.turns: Field required"),
    ],
)
def test_a_key_of_a_flow_is_named_as_it_is_written(tmp_path: Path, keys: dict[str, object], sentence: str) -> None:
    with pytest.raises(ScriptError, match=sentence):
        Script.read(written(tmp_path, **keys))


def test_a_key_of_a_strategy_is_named_in_a_flows_script(tmp_path: Path) -> None:
    file = tmp_path / "flow.yaml"
    file.write_text("flow: app.yml\nturns: [{text: hi}]\n")
    with pytest.raises(ScriptError, match="turns: only the script of a strategy has this key: a flow has models"):
        Script.of_flow(file)


def test_a_flows_script_extends_another_one(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text("flow: app.yml\nquery: Hi\nmodels: {a: [{text: x}]}\nthen: [{query: Bye}]\n")
    (tmp_path / "two.yaml").write_text("extends: one.yaml\nquery: Hello\n")
    script = Script.of_flow(tmp_path / "two.yaml")

    assert script.flow == tmp_path / "app.yml"
    assert [said.query for said in script.said] == ["Hello", "Bye"]
    assert script.models["a"][0].text == "x"

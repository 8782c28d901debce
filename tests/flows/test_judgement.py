"""One judge for `devhost check` and `devhost flow`: what Dify's engine does not take, both say."""

from pathlib import Path

import pytest

from devhost.cli.commands import main
from devhost.flow.turn import FlowTurn
from devhost.host.host import Host
from devhost.plugin.declaration import PluginDeclaration
from devhost.protocol.wire import JsonObject
from support.flow_documents import START, answer, chain, chatflow, iteration, node, tool
from tests.flows.conftest import FIXTURES
from tests.flows.playing import Played

CODE = node("code", "count", code="def main(): return {}", code_language="python3", outputs={})


def one(folder: Path, given: JsonObject) -> Path:
    return chatflow(folder, [START, given, answer("Done.")], chain("start", given["id"], "answer"))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (CODE, "node 'Count' (count): variables: Field required"),
        (node("assigner", "set", actions=[]), "node 'Set' (set): Variable assigner DSL node data is not recognized."),
    ],
)
def test_what_the_engine_refuses_is_said_by_check_and_by_flow(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], given: JsonObject, sentence: str
) -> None:
    file = one(tmp_path, given)

    assert main(["check", str(file)]) == 1
    assert f"Dify's engine does not play it:\n  {sentence}" in capsys.readouterr().out
    assert main(["flow", str(file), "--query", "a", "--allow-code"]) == 2
    assert sentence in capsys.readouterr().err


def test_what_devhost_does_not_play_makes_no_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(one(tmp_path, node("trigger-webhook", "hook")))]) == 0

    said = capsys.readouterr().out
    assert "devhost does not play it:\n  node 'Hook' (hook) is of the type 'trigger-webhook'" in said
    assert "nothing was found" not in said


def test_an_old_export_is_played_as_the_editor_loads_it(tmp_path: Path, puppet: Host) -> None:
    repeat = tool("toolbox", "repeat", settings={"separator": None}, word={"type": "mixed", "value": "a"})
    del repeat["data"]["tool_node_version"]
    double = node("template-transform", "double", template="{{ x }}{{ x }}")
    double["data"]["variables"] = [{"variable": "x", "value_selector": ["each", "item"]}]
    old = iteration("each", [double], over="repeat.files", output="double.output", start_node_id="double")
    old = [each for each in old if each["id"] != "each_start"]
    file = chatflow(
        tmp_path, [START, repeat, *old, answer("{{#repeat.text#}}")], chain("start", "repeat", "each", "answer")
    )

    flow = Played.of(file, FlowTurn("a"), puppet, {})

    assert flow.end.outputs["answer"] == "a-a"
    assert "separator" not in flow.node("repeat").inputs


def test_each_agent_is_played_by_the_plugin_of_its_provider(tmp_path: Path) -> None:
    def agent(plugin: str, strategy: str, query: str) -> JsonObject:
        asked = {"query": {"type": "constant", "value": query}}
        provider = f"someone/{plugin}/{strategy}"
        return node(
            "agent",
            strategy,
            agent_strategy_provider_name=provider,
            agent_strategy_name=strategy,
            agent_parameters=asked,
        )

    nodes = [START, agent("puppet", "puppet", '[{"say": "yes"}]'), agent("bad_strategy", "bad", "file")]
    nodes += [answer("{{#puppet.text#}}")]
    file = chatflow(tmp_path, nodes, chain("start", "puppet", "bad", "answer"))

    with Host.start(FIXTURES / "puppet", others=[PluginDeclaration.read(FIXTURES / "bad_strategy")]) as host:
        flow = Played.of(file, FlowTurn("a"), host, {"puppet": [{"text": "."}], "bad": [{"text": "."}]})

    runs = [flow.node(name).run for name in ("puppet", "bad")]
    assert flow.node("puppet").outputs["text"] == "yes"
    assert [run.strategy for run in runs if run is not None] == ["puppet", "bad"]

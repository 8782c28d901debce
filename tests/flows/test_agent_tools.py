"""An Agent node's own tools on the engine: the strategy gets what the node holds, and calls it."""

import json
from pathlib import Path

from devhost.flow.turn import FlowTurn
from devhost.host.host import Host
from devhost.protocol.wire import JsonObject
from support.flow_documents import START, answer, chain, chatflow, node
from tests.flows.playing import Played


def agent(*tools: JsonObject, model: JsonObject, steps: list[JsonObject]) -> JsonObject:
    values = {"model": model, "tools": list(tools), "query": json.dumps(steps)}
    parameters = {name: {"type": "constant", "value": value} for name, value in values.items()}
    return node("agent", "agent", agent_strategy_name="puppet", agent_parameters=parameters)


def test_the_strategy_gets_the_nodes_tools_and_model_and_can_call_any_tool(tmp_path: Path, puppet: Host) -> None:
    repeat = {
        "provider_name": "devhost-tests/toolbox/toolbox",
        "tool_name": "repeat",
        "enabled": True,
        "settings": {"separator": {"value": {"type": "mixed", "value": "{{#sys.query#}}"}}},
        "parameters": {"word": {"auto": 1, "value": None}},
        "extra": {"description": ""},
    }
    model = {"provider": "langgenius/openai/openai", "model": "gpt-5", "completion_params": {"temperature": 0.5}}
    called = {
        "provider": "devhost-tests/toolbox/toolbox",
        "tool_name": "repeat",
        "parameters": {"word": "yes", "separator": "/"},
    }
    given = agent(repeat, model=model, steps=[{"show_parameters": None}, {"call": called}])
    file = chatflow(tmp_path, [START, given, answer("{{#agent.text#}}")], chain("start", "agent", "answer"))

    played = Played.of(file, FlowTurn("and"), puppet, {"agent": [{"text": "."}]})

    outputs = played.node("agent").outputs
    (tool,) = outputs["parameters"]["tools"]
    assert tool["identity"]["name"] == "repeat"
    assert tool["runtime_parameters"] == {"separator": "and"}
    chosen = outputs["parameters"]["model"]
    assert (chosen["model"], chosen["completion_params"]) == ("gpt-5", {"temperature": 0.5})
    assert outputs["tool_messages"][0]["message"] == {"text": "yes/yes"}

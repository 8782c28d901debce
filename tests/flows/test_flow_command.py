"""The options of `devhost flow` reach the plugins that it starts."""

import io
import json
import sys
from pathlib import Path

import pytest

from devhost.cli.commands import main
from support.flow_documents import START, answer, chain, chatflow, mixed, node, tool
from support.mcp_servers import COMMAND
from tests.flows.conftest import FIXTURES

AGENT_MODEL = {"provider": "langgenius/openai/openai", "model": "gpt-5", "model_type": "llm", "completion_params": {}}
TOKEN = "tk-environment-12345"


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


def test_a_secret_environment_variable_is_not_shown(
    with_a_token: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["flow", str(with_a_token), "--query", "go", "--json", "--verbose"]) == 0
    said = capsys.readouterr()

    assert TOKEN not in said.out + said.err
    assert json.loads(said.out)["outputs"]["answer"] == "The key=[secret]."
    assert "The key=[secret]." in said.err

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"go\n/variables\n/log\n")))
    assert main(["flow", "chat", str(with_a_token)]) == 0
    shown = capsys.readouterr().out

    assert TOKEN not in shown
    assert shown.count("key=[secret]") >= 3  # the answer, the variable and the node's row


def test_the_tools_of_an_mcp_server_are_in_tool_nodes_and_agents(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    of_server = {"provider_id": "everything", "provider_name": "everything", "provider_type": "mcp"}
    repeat = tool("everything", "repeat", text=mixed("ha"), times={"type": "constant", "value": "2"})
    repeat["data"].update(of_server)
    steps = [{"call": {"provider": "everything", "tool_name": "say", "parameters": {"texts": ["it said"]}}}]
    offered = {"enabled": True, "type": "mcp", "provider_name": "everything", "tool_name": "say", "parameters": {}}
    query = json.dumps([*steps, {"show_parameters": None}])
    given: dict[str, object] = {"tools": [{**offered, "settings": {}}], "query": query, "model": AGENT_MODEL}
    parameters = {name: {"type": "constant", "value": value} for name, value in given.items()}
    agent = node("agent", "agent", agent_strategy_name="puppet", agent_parameters=parameters)
    chatflow(tmp_path, [START, repeat, agent, answer("{{#repeat.text#}}")], chain("start", "repeat", "agent", "answer"))

    def played(*options: str, name: str = "everything", code: int = 0) -> str:
        script = {"flow": "flow.yml", "query": "go", "models": {"agent": [{"text": ""}]}, "mcp": f"{name}={COMMAND}"}
        (tmp_path / "script.yaml").write_text(json.dumps(script))
        command = ["flow", "--script", str(tmp_path / "script.yaml"), "--plugin", str(FIXTURES / "puppet"), "--json"]
        assert main([*command, *options]) == code
        said = capsys.readouterr()
        if code:
            return said.err
        return said.out

    _, tool_node, agent_node, end = json.loads(played())["nodes"]
    assert tool_node["outputs"]["text"] == "ha\nha"
    (message,) = agent_node["outputs"]["tool_messages"]
    assert message["message"] == {"text": "it said"}
    (entity,) = agent_node["outputs"]["parameters"]["tools"]
    assert (entity["provider_type"], entity["identity"]["provider"]) == ("mcp", "everything")
    assert end["outputs"]["answer"] == "ha\nha"

    of_another = played(name="other", code=2)
    assert "node 'Repeat' (repeat) uses repeat of everything: no given plugin has that" in of_another
    assert "with --tools DIR, or an MCP server of this name with --mcp everything=COMMAND" in of_another

    file = tmp_path / "flow.yml"
    file.write_text(file.read_text().replace("tool_name: say", "tool_name: shout"))
    assert "node 'Agent' (agent) uses shout of everything: no given plugin has that; there are: everything/repeat" in (
        played(code=2)
    )

"""Dify's own tools, and those that a script answers for, in a flow that is played."""

import json
from pathlib import Path

import pytest

from devhost.cli.commands import main
from support.flow_documents import START, answer, chain, chatflow, mixed, node


def test_a_flow_plays_difys_own_tools_and_a_scripts_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def tool(provider: str, name: str, kind: str, **parameters: object) -> dict[str, object]:
        data = {"provider_id": provider, "provider_name": provider, "provider_type": kind, "tool_name": name}
        return node("tool", name, **data, tool_label=name, tool_configurations={}, tool_parameters=parameters)

    day = tool("time", "weekday", "builtin", year=mixed("2024"), month=mixed("2"), day=mixed("29"))
    order = tool("2ebe9c1d", "order", "api", city=mixed("{{#sys.query#}}"))
    nodes = [START, day, order, answer("{{#weekday.text#}} {{#order.text#}}")]
    file = chatflow(tmp_path, nodes, chain("start", "weekday", "order", "answer"))
    script = tmp_path / "script.yaml"
    script.write_text("query: Bonn\ntool_answers: {order: Sent.}", encoding="utf-8")

    assert main(["flow", str(file), "--script", str(script), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outputs"]["answer"] == "February 29, 2024 is Thursday. Sent."

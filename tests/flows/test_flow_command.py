"""The options of `devhost flow` reach the plugins that it starts."""

import json
from pathlib import Path

import pytest

from devhost.cli.commands import main
from tests.flows.building import answer, chain, chatflow, start, tool
from tests.flows.conftest import FIXTURES


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

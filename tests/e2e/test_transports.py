"""One question, three ways to run the plugin, one outcome."""

from pathlib import Path
from typing import Any

import pytest

from devhost import Host, ScriptedModel
from devhost.models.script import Script
from devhost.node.outputs.outputs import NodeOutputs
from devhost.process.transports.transport import TransportName

pytestmark = pytest.mark.e2e
ROOT = Path(__file__).parents[2]
HELPDESK = ROOT / "examples" / "helpdesk"

OF_THE_MOMENT = frozenset(
    {
        *("id", "parent_id", "url", "path"),
        *("elapsed_seconds", "elapsed_time", "started_at", "finished_at"),
        *("latency", "time_to_first_token", "time_to_generate"),
    }
)
"""Keys whose values no two runs share."""


def lasting(value: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    """Without what belongs to the moment; that it was there stays."""
    if isinstance(value, dict):
        return {key: "…" if key in OF_THE_MOMENT else lasting(item) for key, item in value.items()}
    if isinstance(value, list):
        return [lasting(item) for item in value]
    return value


def node(outputs: NodeOutputs) -> dict[str, Any]:
    trees = [root.tree() for root in outputs.logs]
    values = {"text": outputs.text, "files": outputs.files, "json": outputs.json, "usage": outputs.usage}
    resources = outputs.dropped_retriever_resources
    return dict(lasting({**values, "variables": outputs.variables, "logs": trees, "resources": resources}))


def answer(transport: TransportName) -> dict[str, Any]:
    script = Script.read(HELPDESK / "script.yaml")
    turns = [turn.model_copy(update={"delay": 0}) for turn in script.turns]
    with Host.start(ROOT, tools=[HELPDESK], transport=transport) as host:
        model = ScriptedModel(turns, script.query, script.model)
        run = host.run("gpt5_function_calling", {**script.params, "query": script.query}, model=model)
    assert run.error is None, run.error
    assert run.findings == []
    assert model.remaining == 0
    return node(run.outputs)


def test_the_help_desk_answers_the_same_in_all_three() -> None:
    stdio = answer("stdio")
    assert "[1]" in stdio["text"]
    assert len(stdio["variables"]["tool_runs"]) == 2
    assert answer("tcp") == stdio
    assert answer("http") == stdio

"""In a daemon that loses messages which come faster than it passes them on, a strategy's run loses none."""

from pathlib import Path

import pytest

from devhost import FunctionTool, Host, HostLimits, ScriptedModel
from devhost.protocol.wire import JsonObject
from tests.e2e.test_plugin_process import ended_well, says, wants

pytestmark = pytest.mark.e2e

PLACES = 128
SEARCHED: list[JsonObject] = [wants(("search", {"q": "a"}), ("search", {"q": "b"})), says("Found.")]
SCRIPTS: dict[str, list[JsonObject]] = {
    "gpt5_function_calling": SEARCHED,
    "gpt5_react": SEARCHED,
    "gpt5_plan_and_reflect": [
        wants(("submit_plan", {"subtasks": ["alpha"]})),
        *SEARCHED,
        wants(("submit_reflection", {"is_completed": True, "advice": ""})),
        says("Found."),
    ],
}


def test_no_strategy_loses_a_message() -> None:
    """The runs have fewer messages than there are places, so that the speed of the machine does not matter."""
    tool = FunctionTool("search", {"q": "string"}, lambda given: f"result for {given['q']}")
    with Host.start(Path(__file__).parents[2], limits=HostLimits(burst_messages=PLACES)) as host:
        for strategy, turns in SCRIPTS.items():
            run = host.run(strategy, {"query": "What?"}, model=ScriptedModel.of(turns), tools=[tool])
            assert ended_well(run)
            assert len(run.messages) <= PLACES
            assert run.outputs.text.endswith("Found.")

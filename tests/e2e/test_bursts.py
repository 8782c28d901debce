"""The daemon's loss of messages that come faster than it passes them on: none of a strategy's is lost."""

from pathlib import Path

import pytest

from devhost import FunctionTool, Host, HostLimits, ScriptedModel
from devhost.protocol.wire import JsonObject
from tests.e2e.test_plugin_process import ended_well, says, wants

pytestmark = pytest.mark.e2e

PLACES = 128
SEARCHED: list[JsonObject] = [wants(("search", {"q": "a"}), ("search", {"q": "b"})), says("Found.")]
DONE = {"is_completed": True, "advice": ""}
PLANNED: list[JsonObject] = [
    wants(("submit_plan", {"subtasks": ["alpha"]})),
    *SEARCHED,
    wants(("submit_reflection", DONE)),
    says("Found."),
]


def test_three_strategies_lose_nothing_in_a_daemon_that_loses_messages() -> None:
    """Runs of fewer messages than there are places, so that no speed of this machine matters."""
    tool = FunctionTool("search", {"q": "string"}, lambda given: f"result for {given['q']}")
    scripts = {"gpt5_function_calling": SEARCHED, "gpt5_react": SEARCHED, "gpt5_plan_and_reflect": PLANNED}
    with Host.start(Path(__file__).parents[2], limits=HostLimits(burst_messages=PLACES)) as host:
        for strategy, turns in scripts.items():
            model = ScriptedModel.of(turns)
            run = host.run(strategy, {"query": "What?"}, model=model, tools=[tool])
            assert ended_well(run)
            assert 0 < len(run.messages) <= PLACES
            assert not [finding for finding in run.findings if finding.rule in {"message-lost", "answer-lost"}]
            assert run.outputs.text.endswith("Found.")

"""A conversation with an approval, as a chatflow holds it: each message is a run, and the state lies between them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from devhost import FunctionTool, Host, ModelRequest, Run, ScriptedModel
from devhost.protocol.wire import JsonObject
from tests.e2e.test_plugin_process import ended_well, says, wants

pytestmark = pytest.mark.e2e

NODE = {
    "query": "{{#sys.query#}}",
    "approval": "{{#sys.query#}}",
    "state": "{{#conversation.state#}}",
    "approval_required": "order",
}
PRICE = "The lamp costs 40 euros."
SEARCHES = wants(("search", {"q": "lamp"}))
ORDERS = wants(("order", {"q": "lamp, 40 euros"}))
DONE = wants(("submit_reflection", {"is_completed": True, "advice": ""}))


@dataclass
class Chat:
    """An app with one Agent node, and a Variable Assigner that writes its state back."""

    host: Host
    strategy: str
    orders: list[JsonObject] = field(default_factory=list)
    state: object = ""

    def says(self, query: str, turns: Sequence[JsonObject]) -> tuple[Run, list[ModelRequest]]:
        model = ScriptedModel.of(turns, query=query)
        run = self.host.run(
            self.strategy,
            NODE,
            model=model,
            tools=[
                FunctionTool("search", {"q": "string"}, lambda _: PRICE),
                FunctionTool("order", {"q": "string"}, self._order),
            ],
            variables={"sys.query": query, "conversation.state": self.state},
        )
        assert ended_well(run)
        assert model.remaining == 0
        self.state = run.outputs.variables["state"]
        return run, model.requests

    def _order(self, arguments: JsonObject) -> str:
        self.orders.append(arguments)
        return "Order 4711 was placed."


def plans(name: str) -> JsonObject:
    return wants(("submit_plan", {"subtasks": [name]}), when="Call submit_plan.")


ONE_LOOP = (
    [SEARCHES, ORDERS],
    [says("It is on its way: {{tool_results}}")],
    [says("It cost 40 euros.")],
)
PLAN = (
    [plans("Buy a lamp"), SEARCHES, ORDERS],
    [
        says("{{tool_results}} It costs 40 euros."),
        DONE,
        says("It is on its way: Order 4711 was placed.", when="<findings>"),
    ],
    [plans("Name the price"), says("40 euros."), DONE, says("It cost 40 euros.", when="<findings>")],
)
SCRIPTS: Mapping[str, Sequence[Sequence[JsonObject]]] = {
    "gpt5_function_calling": ONE_LOOP,
    "gpt5_react": ONE_LOOP,
    "gpt5_plan_and_reflect": PLAN,
}


@pytest.mark.parametrize("strategy", SCRIPTS)
def test_a_call_waits_is_approved_runs_once_and_is_remembered(host: Host, strategy: str) -> None:
    asks, goes_on, remembers = SCRIPTS[strategy]
    chat = Chat(host, strategy)

    run, _ = chat.says("Buy the lamp, please.", asks)
    assert run.outputs.variables["stop_reason"] == "approval_required"
    (pending,) = run.outputs.variables["pending_calls"]
    assert (pending["tool"], pending["arguments"]) == ("order", {"q": "lamp, 40 euros"})
    assert "lamp, 40 euros" in run.outputs.text
    assert chat.orders == []

    run, requests = chat.says("yes", goes_on)
    assert chat.orders == [{"q": "lamp, 40 euros"}]
    assert run.outputs.text == "It is on its way: Order 4711 was placed."
    assert (run.outputs.variables["stop_reason"], run.outputs.variables["pending_calls"]) == ("answered", [])
    results = [message.text for message in requests[0].prompt_messages if message.role == "tool"]
    assert results == [PRICE, "Order 4711 was placed."]

    run, requests = chat.says("What did it cost?", remembers)
    assert run.outputs.text == "It cost 40 euros."
    earlier = "\n".join(message.text for message in requests[0].prompt_messages[:-1])
    assert "40 euros" in earlier
    assert "Order 4711 was placed." in earlier
    assert chat.orders == [{"q": "lamp, 40 euros"}]

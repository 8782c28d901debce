"""Plan and reflect in the plugin's own process, over real HTTP against the strict fake of the API; and a schema."""

import json
import threading
from collections.abc import Iterator

import pytest

from devhost import Host, ScriptedModel
from devhost.models.openai_api.backend import Connection, OpenAIModel
from devhost.models.openai_api.provider import Api
from devhost.protocol.wire import JsonObject
from fake_openai import KEY, Call, FakeOpenAI, Turn
from tests.e2e.test_plugin_process import ended_well, meeting_tool, wants

pytestmark = pytest.mark.e2e

STRATEGY = "gpt5_plan_and_reflect"
NAMES = ("alpha", "beta")
SCHEMA = {"type": "object", "properties": {"city": {"$ref": "#/$defs/name"}}, "$defs": {"name": {"type": "string"}}}


def test_an_answer_in_a_schema_is_an_output_of_the_node(host: Host) -> None:
    model = ScriptedModel.of([wants(("submit_answer", {"city": ["Köln"]})), wants(("submit_answer", {"city": "Köln"}))])

    run = host.run("gpt5_react", {"query": "Where?", "answer_schema": json.dumps(SCHEMA)}, model=model, tools=[])

    assert ended_well(run)
    assert run.outputs.variables["structured_output"] == {"city": "Köln"}
    assert json.loads(run.outputs.text) == {"city": "Köln"}


class PlanningFake(FakeOpenAI):
    """Gives each call the turn that it wants, since those of parallel subtasks come in any order."""

    def __init__(self) -> None:
        super().__init__()
        self._choosing = threading.Lock()

    def answer(self, path: str, key: str, body: bytes) -> tuple[Turn, Iterator[object]]:
        with self._choosing:
            self.will(turn_for(json.loads(body)))
            return super().answer(path, key, body)


def turn_for(body: JsonObject) -> Turn:
    tools = {tool.get("name") or tool["function"]["name"] for tool in body.get("tools") or ()}
    written = json.dumps(body.get("input", body.get("messages")))
    name = next((name for name in NAMES if f"ubtask: {name}" in written), "")
    if "submit_plan" in tools:
        return Turn(calls=(Call("submit_plan", {"subtasks": list(NAMES)}),))
    if "submit_reflection" in tools:
        return Turn(calls=(Call("submit_reflection", {"is_completed": True, "advice": ""}),))
    if "search" in tools and f"found {name}" not in written:
        return Turn(calls=(Call("search", {"q": name}),))
    if "search" in tools:
        return Turn(text=f"Answer to {name}.")
    return Turn(text="Both found.")


@pytest.fixture(scope="module")
def fake() -> Iterator[PlanningFake]:
    with PlanningFake() as fake:
        yield fake


@pytest.mark.parametrize("host", ["stdio"], indirect=True, scope="session")
@pytest.mark.parametrize("api", ["responses", "chat"])
def test_two_subtasks_overlap_and_end_in_one_answer(host: Host, fake: PlanningFake, api: Api) -> None:
    fake.forget()
    model = OpenAIModel(Connection(KEY, fake.base_url), api, "gpt-5")

    run = host.run(STRATEGY, {"query": "What of both?"}, model=model, tools=[meeting_tool()])

    assert ended_well(run)
    assert run.outputs.text == "Both found."
    assert run.outputs.variables["plan"] == list(NAMES)
    assert run.outputs.variables["subtasks"] == [
        {"name": name, "answer": f"Answer to {name}.", "completed": True, "attempts": 1} for name in NAMES
    ]
    assert len(fake.requests) == 1 + 2 * 3 + 1
    assert run.outputs.usage["prompt_tokens"] == len(fake.requests) * 100

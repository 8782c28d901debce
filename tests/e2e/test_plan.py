"""Plan and reflect end to end: in the plugin's own process, and over real HTTP against the strict fake of the API."""

import json
import threading
from collections.abc import Iterator

import pytest

from devhost import FunctionTool, Host, Run, ScriptedModel
from devhost.models.openai_api.backend import Connection, OpenAIModel
from devhost.models.openai_api.provider import Api
from devhost.protocol.wire import JsonObject
from fake_openai import KEY, Call, FakeOpenAI, Turn
from tests.e2e.test_plugin_process import ended_well, labels, says, wants
from tests.support.clock import PATIENCE

pytestmark = pytest.mark.e2e

STRATEGY = "gpt5_plan_and_reflect"
ONE_HOST = pytest.mark.parametrize("host", ["stdio"], indirect=True, scope="session")
NAMES = ("alpha", "beta")
SCHEMA = {"type": "object", "properties": {"city": {"$ref": "#/$defs/name"}}, "$defs": {"name": {"type": "string"}}}


def meeting_tool() -> FunctionTool:
    """Answers only when both subtasks are in it at once."""
    meet = threading.Barrier(len(NAMES), timeout=PATIENCE)

    def look_up(arguments: JsonObject) -> str:
        meet.wait()
        return f"result for {arguments['q']}"

    return FunctionTool("search", {"q": "string"}, look_up)


def turns_of(name: str) -> list[JsonObject]:
    """Beta needs a second attempt."""
    done = {"is_completed": True, "advice": ""}
    missing = {"is_completed": False, "advice": "Try harder."}
    again = [
        wants(("submit_reflection", missing), when=f"Judge subtask: {name}"),
        says(f"Answer to {name}.", when="Try harder."),
    ]
    return [
        wants(("search", {"q": name}), when=f"\nSubtask: {name}"),
        says(f"Answer to {name}.", when=f"result for {name}"),
        *(again if name == "beta" else []),
        wants(("submit_reflection", done), when=f"Judge subtask: {name}"),
    ]


def test_two_subtasks_overlap_and_end_in_one_answer(host: Host) -> None:
    turns = [wants(("submit_plan", {"subtasks": list(NAMES)})), *turns_of("alpha"), *turns_of("beta")]
    model = ScriptedModel.of([*turns, says("Both found.", when="<findings>")])

    run = host.run(STRATEGY, {"query": "What of both?"}, model=model, tools=[meeting_tool()])

    assert ended_well(run)
    assert run.outputs.text == "Both found."
    assert run.outputs.variables["plan"] == list(NAMES)
    assert [entry["attempts"] for entry in run.outputs.variables["subtasks"]] == [1, 2]
    assert run.outputs.usage["total_tokens"] > 0
    assert model.remaining == 0
    model_name = "scripted-gpt-5"
    attempt = ["ATTEMPT 1", ["ROUND 1", model_name, "CALL search"], ["ROUND 2", model_name], ["REFLECTION", model_name]]
    assert labels(run.outputs.logs) == [
        ["PLAN", model_name],
        ["1. alpha", attempt],
        ["2. beta", attempt, ["ATTEMPT 2", ["ROUND 1", model_name], ["REFLECTION", model_name]]],
        ["ANSWER", ["ROUND 1", model_name]],
        "RUN FINISHED: answered",
    ]


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
    if "search" in tools and "result for" not in written:
        return Turn(calls=(Call("search", {"q": name}),))
    if "search" in tools:
        return Turn(text=f"Answer to {name}.")
    if "submit_answer" in tools:
        return Turn(calls=(Call("submit_answer", {"city": "Köln"}),))
    return Turn(text="Both found.")


@pytest.fixture(scope="module")
def fake() -> Iterator[PlanningFake]:
    with PlanningFake() as fake:
        yield fake


def run_over_http(host: Host, fake: PlanningFake, api: Api, **params: object) -> Run:
    fake.forget()
    model = OpenAIModel(Connection(KEY, fake.base_url), api, "gpt-5")
    run = host.run(STRATEGY, {"query": "What of both?", **params}, model=model, tools=[meeting_tool()])
    assert ended_well(run)
    assert run.outputs.variables["subtasks"] == [
        {"name": name, "answer": f"Answer to {name}.", "completed": True, "attempts": 1} for name in NAMES
    ]
    return run


@ONE_HOST
@pytest.mark.parametrize("api", ["responses", "chat"])
def test_the_same_over_real_http(host: Host, fake: PlanningFake, api: Api) -> None:
    run = run_over_http(host, fake, api)

    assert run.outputs.text == "Both found."
    assert len(fake.requests) == 1 + 2 * 3 + 1
    assert run.outputs.usage["prompt_tokens"] == len(fake.requests) * 100

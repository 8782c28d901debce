"""One run of a strategy in this process, and what came out of it."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from devhost.node.messages import Message
from devhost.node.texts import NodeText
from internal.agent import FUNCTION_CALLING, Blueprint, run_agent
from internal.clock import Clock
from internal.policy import PolicyTexts
from internal.transcript.steps import split_notes
from tests.support.host import Handler, HostTransport, Json, ScriptedModel, Step, Tools, make_session
from tests.support.strict_reader import READER
from tests.support.wire import model, parameter, tool

_ID = re.compile(r"\n\n\[result:r\d+\]\Z")


def without_id(result: str) -> str:
    """A tool message without the id, by which the model can refer to the result, and without notes of the agent."""
    return _ID.sub("", without_notes(result))


def without_notes(result: str) -> str:
    """What a tool said."""
    return split_notes(result)[0]


@dataclass
class Outcome:
    """What the host got, message by message, and what it was asked."""

    messages: list[Json]
    error: Exception | None
    model: ScriptedModel
    tools: Tools
    transport: HostTransport

    def bodies(self, kind: str) -> list[Json]:
        return [message["message"] for message in self.messages if message["type"] == kind]

    @property
    def text(self) -> str:
        return "".join(body["text"] for body in self.bodies("text"))

    @property
    def variables(self) -> dict[str, Any]:
        return {body["variable_name"]: body["variable_value"] for body in self.bodies("variable")}

    @property
    def last_json(self) -> Json:
        body = self.bodies("json")[-1]
        return dict(body["json_object"])

    @property
    def logs(self) -> dict[str, Json]:
        """The last state of each log by id without the run's prefix, in the order in which they were opened."""
        return {log["id"].partition("-")[2]: log for log in self.bodies("log")}

    @property
    def notes(self) -> list[str]:
        """Those of rows, and those of the run, which are in its last row."""
        of_rows = [log["data"]["note"] for log in self.logs.values() if "note" in log["data"]]
        return of_rows + [note for log in self.logs.values() for note in log["data"].get("notes", [])]

    @property
    def stop_reason(self) -> str:
        return str(self.variables["stop_reason"])

    def tool_results(self, round_number: int = 1) -> list[str]:
        """What the model read as the results of a round, without their ids: the tool messages after its calls."""
        prompt = self.model.prompts[-1] if len(self.model.prompts) > round_number else []
        groups: list[list[str]] = []
        for message in prompt:
            if message["role"] == "assistant" and message.get("tool_calls"):
                groups.append([])
            elif message["role"] == "tool":
                groups[-1].append(without_id(message["content"]))
        return groups[round_number - 1]


def assert_the_node_changes_no_text(messages: Sequence[Json]) -> None:
    """Dify's Agent node closes a thought that is open before a log, a link, another one or the end: it needs not."""
    text = NodeText()
    said = [Message(message["type"], message["message"]) for message in messages if message["type"] in {"text", "log"}]
    passed = [event for message in said for event in text.read(message)] + list(text.finish())
    assert [event for event in passed if event.type == "text"] == [message for message in said if message.text]


def run(
    steps: Sequence[Step] | ScriptedModel,
    handlers: Mapping[str, Handler] | None = None,
    params: Mapping[str, Any] | None = None,
    *,
    blueprint: Blueprint[Any] = FUNCTION_CALLING,
    policy: PolicyTexts | None = None,
    clock: Clock | None = None,
    environment: Mapping[str, str] | None = None,
    expect_all_steps: bool = True,
) -> Outcome:
    """Run a strategy on a script; each of ``handlers`` is a tool of that name with a string parameter ``q``.

    ``params`` go over the default parameters (``tools`` among them). Every message is taken as the JSON line that the
    SDK would write, so what cannot be written fails here too. So does a request that a provider would refuse, and text
    that Dify's node would change.
    """
    scripted = steps if isinstance(steps, ScriptedModel) else ScriptedModel(list(steps))
    tools = Tools(handlers or {})
    session, transport = make_session(scripted, tools)
    offered = [tool(name, parameter("q")) for name in tools.handlers]
    parameters = {"model": model(), "query": "What is it?", "tools": offered, **(params or {})}
    messages: list[Json] = []
    error: Exception | None = None
    try:
        strategy = replace(blueprint, policy=policy or blueprint.policy)
        for message in run_agent(parameters, session, strategy, clock, environment or {}):
            messages += [json.loads(message.model_dump_json())]
    except Exception as raised:  # noqa: BLE001 - handed to the test
        error = raised
    READER.check()
    assert_the_node_changes_no_text(messages)
    if expect_all_steps and error is None:
        assert not scripted.unscripted, f"no turn was scripted for {scripted.unscripted}"
        assert not scripted.steps, f"{len(scripted.steps)} scripted turns were never asked for"
    return Outcome(messages, error, scripted, tools, transport)

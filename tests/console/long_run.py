"""`python -m tests.console.long_run FILE`: the trace of 100 rounds in four subtasks, in one of which a tool fails.

With a second FILE also that of a run of two calls, neither of which ends before the other has begun. It is a program of
its own, because it imports the SDK.
"""

import sys
import threading
from pathlib import Path

from devhost import FunctionTool, Host, ScriptedModel
from devhost.protocol.wire import JsonObject
from support.tracing import tracing
from support.waiting import PATIENCE
from tests.console.recording import ROOT

ROUNDS = 25
NAMES = (
    "the spare parts in stock",
    "how long each of the four suppliers in Europe and Asia takes to deliver",
    "what late orders cost",
    "alternatives",
)
FAILS = f"{NAMES[2]}, step 17"


def look(given: JsonObject) -> str:
    if given["topic"] == FAILS:
        raise ValueError("the price list is locked")
    return f"found for {given['topic']}: {'a line of the result. ' * 20}"


def turns() -> list[JsonObject]:
    plan = {"name": "submit_plan", "id": "plan", "arguments": {"subtasks": list(NAMES)}}
    judged = {"name": "submit_reflection", "id": "judged", "arguments": {"is_completed": True, "advice": ""}}
    made: list[JsonObject] = [{"tool_calls": [plan], "when": "Call submit_plan"}]
    for name in NAMES:
        for step in range(1, ROUNDS):
            call = {"name": "look", "id": f"call_{step}", "arguments": {"topic": f"{name}, step {step}"}}
            when = f"Subtask: {name}" if step == 1 else after(name, step - 1)
            made.append({"text": "Looking.", "tool_calls": [call], "when": when})
        made.append({"text": f"Answer to {name}.", "when": after(name, ROUNDS - 1)})
        made.append({"tool_calls": [judged], "when": f"Judge subtask: {name}"})
    return [*made, {"text": "All found.", "when": "<findings>"}]


def after(name: str, step: int) -> str:
    """A piece of the result of that step."""
    topic = f"{name}, step {step}"
    if topic == FAILS:
        return "the price list is locked"
    return f"found for {topic}:"


def main() -> None:
    parameters = {"query": "Which parts do we order?", "maximum_iterations": ROUNDS, "maximum_subtasks": len(NAMES)}
    tool = FunctionTool("look", {"topic": "string"}, look)
    with tracing(Path(sys.argv[1]), example="long") as writer, Host.start(ROOT, watcher=writer) as host:
        run = host.run("gpt5_plan_and_reflect", parameters, model=ScriptedModel.of(turns()), tools=[tool])
    assert run.error is None, run.error
    if len(sys.argv) > 2:
        side_by_side(Path(sys.argv[2]))


def side_by_side(file: Path) -> None:
    both_began = threading.Barrier(2, timeout=PATIENCE)

    def meet(given: JsonObject) -> str:
        both_began.wait()
        return f"Nothing about {given['topic']}."

    calls = [{"name": "look", "id": f"call_{topic}", "arguments": {"topic": topic}} for topic in ("tea", "rice")]
    asked = {"thought": "Two topics.", "text": "Looking.", "tool_calls": calls, "delay": 0.01}
    model = ScriptedModel.of([asked, {"text": "Nothing."}])
    with tracing(file) as writer, Host.start(ROOT, watcher=writer) as host:
        tool = FunctionTool("look", {"topic": "string"}, meet)
        run = host.run("gpt5_function_calling", {"query": "Look."}, model=model, tools=[tool])
    assert run.error is None, run.error


if __name__ == "__main__":
    main()

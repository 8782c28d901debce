"""A host whose model and tools take a fixed time: everything beyond it is the agent's and the SDK's.

In: how long a model call and a tool call take, and a model as a function of its request. Out: whole runs over the
SDK's own Session. Model and tools wait as a provider's would: side by side, and without using the processor.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import gevent

from internal.agent import FUNCTION_CALLING, Blueprint, run_agent
from tests.support.host import Handler, Json, make_session
from tests.support.wire import calls, model, parameter, says, text_message, tool

type Answers = Callable[[Json], Iterable[Json]]
"""A model: its chunks by its request."""


@dataclass(frozen=True)
class Delays:
    """Seconds."""

    model: float = 0.0
    tool: float = 0.0


def slow_model(answers: Answers, delays: Delays) -> Handler:
    def handler(request: Json) -> Iterator[Json]:
        gevent.sleep(delays.model)
        yield from answers(request)

    return handler


def slow_tool(delays: Delays) -> Handler:
    def handler(request: Json) -> Iterator[Json]:
        gevent.sleep(delays.tool)
        yield text_message(f"result for {request['tool_parameters']['q']}")

    return handler


def run_once(
    answers: Answers,
    delays: Delays,
    blueprint: Blueprint[Any] = FUNCTION_CALLING,
    params: Mapping[str, Any] | None = None,
) -> None:
    """One run from beginning to end; one that does not answer is no measurement."""
    session, _ = make_session(slow_model(answers, delays), slow_tool(delays))
    parameters = {"model": model(), "query": "?", "tools": [tool("search", parameter("q"))], **(params or {})}
    stop_reason = ""
    for message in run_agent(parameters, session, blueprint):
        body = message.model_dump()["message"]
        stop_reason = body["variable_value"] if body.get("variable_name") == "stop_reason" else stop_reason
    if stop_reason != "answered":
        raise RuntimeError(f"the run ended with {stop_reason!r}, which is no answer to be timed")


def rounds_so_far(request: Json) -> int:
    return sum(message["role"] == "assistant" for message in request["prompt_messages"])


def one_call_a_round(rounds: int) -> Answers:
    """A model that makes one call in each of so many rounds, each another, and then answers."""

    def answers(request: Json) -> Iterable[Json]:
        done = rounds_so_far(request)
        chunks: list[Json] = calls(("search", {"q": str(done)})) if done < rounds else says("All ", "found.")
        return chunks

    return answers


def all_calls_at_once(count: int) -> Answers:
    """A model that makes all its calls in its first turn."""

    def answers(request: Json) -> Iterable[Json]:
        wanted = [("search", {"q": str(number)}) for number in range(count)]
        chunks: list[Json] = says("All found.") if rounds_so_far(request) else calls(*wanted)
        return chunks

    return answers


def a_plan_of(count: int) -> Answers:
    """A model that plans so many subtasks, looks up one thing in each, and is content with what it finds."""

    def answers(request: Json) -> Iterable[Json]:
        offered = {offer["name"] for offer in request["tools"] or ()}
        chunks: list[Json]
        if "submit_plan" in offered:
            chunks = calls(("submit_plan", {"subtasks": [f"part {number}" for number in range(count)]}))
        elif "submit_reflection" in offered:
            chunks = calls(("submit_reflection", {"is_completed": True, "advice": ""}))
        elif "search" in offered and not rounds_so_far(request):
            chunks = calls(("search", {"q": "x"}))
        else:
            chunks = says("All found.")
        return chunks

    return answers

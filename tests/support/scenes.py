"""What several tests of the agent share: chunks, a movable clock, live runs, and the prompt's invariants."""

import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import gevent
from dify_plugin.core.runtime import Session
from gevent.event import Event

from devhost.models.backend import chunk, tool_call
from internal.agent import FUNCTION_CALLING, Blueprint, run_agent
from internal.clock import Clock
from prompt import template, user_texts
from tests.support.clock import PATIENCE, FakeTime
from tests.support.host import Handler, Json, ScriptedModel, Step, Tools, make_session
from tests.support.run import Outcome, without_notes
from tests.support.wire import MODEL, USAGE, calls, model, parameter, replies, says, text_message, tool

entry = tool_call
"""An entry of a chunk's tool calls: id, name, arguments."""


def text(content: object, **more: Any) -> Json:  # noqa: ANN401 - passed on as it is
    """A chunk of content: a string, None, or a list of parts."""
    made = chunk(MODEL, **more)
    made["delta"]["message"]["content"] = content
    return made


def part(data: str, **more: Any) -> Json:  # noqa: ANN401 - passed on as it is
    """A text part of a content list."""
    return {"type": "text", "data": data, **more}


def asks(*entries: Json, finish_reason: str | None = None, **more: Any) -> Json:  # noqa: ANN401 - passed on as it is
    """A chunk with tool-call entries."""
    return chunk(MODEL, tool_calls=entries, finish_reason=finish_reason, **more)


def ends(finish_reason: str | None = "stop", usage: Json | None = USAGE) -> Json:
    """A last chunk without content."""
    return chunk(MODEL, usage=usage, finish_reason=finish_reason)


def cut_off(answer: str, why: str = "time_limit") -> str:
    """What the user reads of an answer that ends too early."""
    return f"{answer}\n\n{user_texts.CUT_SHORT[why]['en']}"


def search(query: str = "x", **more: Any) -> list[Any]:  # noqa: ANN401 - passed on as it is
    """A turn with one call of the tool ``search``."""
    return calls(("search", {"q": query}), **more)


def submits(answer: Json | str, **more: Any) -> list[Any]:  # noqa: ANN401 - passed on as it is
    """A turn that hands an answer over."""
    return calls(("submit_answer", answer), **more)


def passes(*remarks: str) -> list[Any]:
    """A judgement that takes the draft."""
    return calls(("submit_review", {"passes": True, "problems": list(remarks)}))


def rejects(*problems: str) -> list[Any]:
    """A judgement that does not take the draft."""
    return calls(("submit_review", {"passes": False, "problems": list(problems)}))


def wait_for(event: Event) -> Callable[[], None]:
    """A step of a script that goes on when the event is set, and fails the call when it never is."""

    def step() -> None:
        assert event.wait(PATIENCE), "what the script waited for never came"

    return step


def silence(time: FakeTime, seconds: float) -> Callable[[], None]:
    """A step of a script that waits until all else has settled, lets these seconds pass, and never ends."""

    def step() -> None:
        gevent.idle()
        time.advance(seconds)
        Event().wait()

    return step


def silent(time: FakeTime, seconds: float) -> Handler:
    """A tool that says nothing for these seconds, and nothing after them."""

    def handler(_request: Json) -> Iterator[Json]:
        silence(time, seconds)()
        yield text_message("too late")

    return handler


@dataclass
class LiveRun:
    """A run whose messages are taken one by one."""

    messages: Generator[Json, None, None]
    session: Session
    model: ScriptedModel

    def until(self, kind: str) -> Json:
        """The next message of a type."""
        return next(message["message"] for message in self.messages if message["type"] == kind)


def live(
    steps: Sequence[Step],
    handlers: Mapping[str, Handler] | None = None,
    params: Mapping[str, Any] | None = None,
    clock: Clock | None = None,
    blueprint: Blueprint[Any] = FUNCTION_CALLING,
) -> LiveRun:
    """Begin a run as ``tests.support.run.run`` does, and leave its messages to the test."""
    scripted = ScriptedModel(list(steps))
    tools = Tools(handlers or {})
    session, _ = make_session(scripted, tools)
    offered = [tool(name, parameter("q")) for name in tools.handlers]
    parameters = {"model": model(), "query": "What is it?", "tools": offered, **(params or {})}
    sent = run_agent(parameters, session, blueprint, clock)
    return LiveRun((json.loads(message.model_dump_json()) for message in sent), session, scripted)


def assistant_messages(prompt: Sequence[Json]) -> list[Json]:
    return [message for message in prompt if message["role"] == "assistant"]


def results_in(prompt: Sequence[Json]) -> list[str]:
    """The tool results of a prompt, all rounds of it, without notes of the agent."""
    return [without_notes(message["content"]) for message in prompt if message["role"] == "tool"]


def last_note(prompt: Sequence[Json]) -> str:
    """What the agent tells the model at the end of a prompt: behind the last result, or in a user's message."""
    message = prompt[-1]
    if message["role"] == "tool":
        return str(message["content"]).rpartition(template.AGENT_NOTE_BEGIN)[2].removesuffix(template.AGENT_NOTE_END)
    assert message["role"] == "user"
    return str(message["content"]).rpartition("\n\n")[2]


def log_of(outcome: Outcome, beginning: str) -> Json:
    """The last state of the first log whose label begins so."""
    return next(log for log in outcome.logs.values() if log["label"].startswith(beginning))


def check_prompt(prompt: Sequence[Json]) -> None:
    """The invariants that every provider needs: docs/model-facts.md, "What every request keeps"."""
    messages = list(prompt)
    assert {message["role"] for message in messages} <= {"system", "user", "assistant", "tool"}
    assert all(message["content"] is not None for message in messages)
    while messages:
        message = messages.pop(0)
        assert message["role"] != "tool", "a result without a call before it"
        for call in message.get("tool_calls") or ():
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
            result = messages.pop(0)
            assert result["role"] == "tool"
            assert (result["tool_call_id"], result["name"]) == (call["id"], call["function"]["name"])
            assert result["name"]
            assert result["tool_call_id"]
            assert result["content"]


def check_growth(requests: Sequence[Json]) -> None:
    """Every prompt to a model begins with exactly the one before it, and so do its tools.

    Another model reads other ids of earlier calls. Behind the first tools stand ``read_result``, from the first cut
    result on, and what ``find_tools`` found.
    """
    first = tools = requests[0]["tools"] or []
    may_find = "find_tools" in [tool["name"] for tool in first]
    can_read = False
    for request in requests:
        check_prompt(request["prompt_messages"])
        can_read = can_read or any("read_result(id=" in text for text in results_in(request["prompt_messages"]))
        before = tools
        tools = request["tools"] or []
        assert tools[: len(before)] == before
        added = [tool["name"] for tool in tools[len(first) :]]
        assert can_read == ("read_result" in added)
        assert may_find or added in ([], ["read_result"])
    for earlier, later in pairwise(requests):
        if earlier["model"] == later["model"]:
            prompt = earlier["prompt_messages"]
            assert later["prompt_messages"][: len(prompt)] == prompt


CITY: Json = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
"""The schema of most answers."""
FOUND = {"search": replies("found")}
"""The tool that most scenes call."""
ANSWER = says("Done.")

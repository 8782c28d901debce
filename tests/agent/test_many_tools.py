"""More tools than a prompt should offer: the model finds the others, which prompts offer from then on."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from prompt import template
from tests.support.host import Json
from tests.support.plans import (
    STRATEGIES,
    advised,
    answers,
    completed,
    incomplete,
    of_subtask,
    offered,
    plans,
    works_on,
)
from tests.support.run import Outcome, run
from tests.support.scenes import ANSWER, check_growth, log_of, results_in
from tests.support.wire import calls, parameter, replies, says, tool

FILLERS = [f"filler_{number}" for number in range(1, 61)]
WEATHER = tool(
    "get_weather",
    parameter("q", required=True),
    description={"human": {}, "llm": "The forecast of a city.\nTemperatures are in degrees."},
)
HANDLERS = {"get_weather": replies("Rain."), **{name: replies("Nothing.") for name in FILLERS}}
each_strategy = pytest.mark.parametrize("strategy", STRATEGIES)


def many(count: int = 60, *others: Json) -> list[Json]:
    """So many tools, and these behind them."""
    return [*(tool(name, parameter("q")) for name in FILLERS[:count]), *(others or (WEATHER,))]


def finds(*queries: str) -> list[Any]:
    return calls(*(("find_tools", {"query": query}) for query in queries))


def asks(city: str = "Rome") -> list[Any]:
    return calls(("get_weather", {"q": city}))


def find_run(steps: Sequence[Any], strategy: str = "function calling", **params: Any) -> Outcome:  # noqa: ANN401
    """A run with 61 tools, of which the last is about the weather."""
    blueprint, before, after = STRATEGIES[strategy]
    return run([*before, *steps, *after], HANDLERS, {"tools": many(), **params}, blueprint=blueprint)


def of_loop(outcome: Outcome) -> list[Json]:
    return [request for request in outcome.model.requests if FILLERS[0] in offered(request)]


@each_strategy
def test_a_tool_is_found_offered_from_then_on_and_called(strategy: str) -> None:
    outcome = find_run([finds("weather forecast"), asks(), ANSWER], strategy, maximum_iterations=1)

    assert outcome.error is None
    check_growth(requests := of_loop(outcome))
    first = [*FILLERS[:20], "find_tools"]
    assert [offered(request) for request in requests[:3]] == [first, [*first, "get_weather"], [*first, "get_weather"]]
    told, _ = results_in(requests[2]["prompt_messages"])
    assert told == f"{template.TOOLS_FOUND}\n- get_weather: The forecast of a city."
    assert "41 more" in requests[0]["tools"][-1]["description"]
    assert [request["tool_parameters"] for request in outcome.tools.requests] == [{"q": "Rome"}]
    assert [entry["tool"] for entry in outcome.variables["tool_runs"]] == ["get_weather"]
    assert log_of(outcome, "CALL find_tools")["data"]["tool_response"] == told
    assert "tools: of 61, prompts offer 20 at first; find_tools finds the others" in outcome.notes


@pytest.mark.parametrize(
    ("count", "most", "shown"),
    [(39, None, 40), (40, None, 20), (60, 0, 61), (60, 61, 61), (60, 60, 20), (60, "5", 5), (5, 3, 3), (60, -1, 61)],
)
def test_how_many_tools_a_prompt_offers(count: int, most: object, shown: int) -> None:
    outcome = find_run([ANSWER], tools=many(count), tools_in_prompt=most)

    finder = ["find_tools"] * (shown < count + 1)
    assert offered(outcome.model.requests[0]) == [*FILLERS[:count], "get_weather"][:shown] + finder


def test_with_300_tools_a_request_is_hardly_larger_than_with_40() -> None:
    def described(count: int) -> list[Json]:
        text = "Does what its name says, for one of the accounts of the user. " * 3
        named = [f"tool_{number}_of_group_{number // 20}" for number in range(count)]
        return [tool(name, parameter("q"), description={"human": {}, "llm": text}) for name in named]

    few = find_run([ANSWER], tools=described(40))
    many = find_run([finds("group 5"), finds("group 9"), ANSWER], tools=described(300))

    sizes = [len(json.dumps(request["tools"])) for request in many.model.requests]
    assert [len(request["tools"]) for request in many.model.requests] == [21, 28, 35]
    assert max(sizes) <= 1.2 * len(json.dumps(few.model.requests[0]["tools"]))


def test_a_tool_is_called_by_its_name_before_it_was_found() -> None:
    outcome = find_run([calls(("get_weather", {"city": "Rome"})), asks(), ANSWER])

    check_growth(outcome.model.requests)
    assert "unknown argument 'city'" in outcome.tool_results(1)[0]
    assert outcome.tool_results(2) == ["Rain."]
    assert offered(outcome.model.requests[1])[-1] == "get_weather"
    note = "get_weather was called by its name before a prompt offered it; the next ones offer it"
    assert outcome.notes.count(note) == 1


def test_only_allowed_tools_are_found_and_called() -> None:
    allowed = [*FILLERS, tool("search_weather")["identity"]["name"]]

    outcome = find_run([finds("weather"), asks(), ANSWER], allowed_tools=allowed)

    assert outcome.tool_results(1) == [template.NO_TOOL_FOUND]
    assert outcome.tool_results(2)[0].startswith("there is not a tool named get_weather; the nearest are: ")
    assert outcome.tools.requests == []


def test_what_finds_nothing_and_what_does_not_exist_is_told() -> None:
    wrong = [finds("", "?!", "quantum", "w" * 201), calls(("find_tools", {})), calls(("get_wether", {"q": "Rome"}))]

    outcome = find_run([*wrong, ANSWER], maximum_iterations=2)

    *nothing, too_long = outcome.tool_results(1)
    assert nothing == [template.NO_TOOL_FOUND] * 3
    assert "find_tools" not in [entry["tool"] for entry in outcome.variables["tool_runs"]]
    assert too_long.startswith("tool arguments validation error: parameter 'query'")
    assert '"query" is a required property' in outcome.tool_results(2)[0]
    (unknown,) = outcome.tool_results(3)
    assert unknown.startswith("there is not a tool named get_wether; the nearest are: get_weather, filler_")
    assert unknown.count(", ") == 7
    assert log_of(outcome, "CALL find_tools")["status"] == "error"


def test_found_tools_stand_behind_all_others() -> None:
    schema = json.dumps({"type": "object", "properties": {"rain": {"type": "boolean"}}})
    handlers = {**HANDLERS, "filler_1": replies("long " * 400)}
    steps = [calls(("filler_1", {})), finds("weather"), calls(("submit_answer", {"rain": True}))]

    outcome = run(steps, handlers, {"tools": many(), "answer_schema": schema, "tool_result_limit": 1000})

    check_growth(outcome.model.requests)
    behind = [offered(request)[20:] for request in outcome.model.requests]
    first = ["submit_answer", "find_tools"]
    assert behind == [first, [*first, "read_result"], [*first, "read_result", "get_weather"]]
    assert outcome.variables["structured_output"] == {"rain": True}


@each_strategy
def test_a_found_tool_waits_for_approval_and_runs_in_the_next_turn(strategy: str) -> None:
    blueprint, before, after = STRATEGIES[strategy]
    params: Json = {"tools": many(), "approval_required": "get_weather"}
    asked = run([*before, finds("weather"), asks()], HANDLERS, params, blueprint=blueprint)
    state = {"state": asked.variables["state"], "approval": "yes", "query": "yes"}

    outcome = run([ANSWER, *after], HANDLERS, params | state, blueprint=blueprint)

    assert asked.tools.requests == []
    assert asked.variables["pending_calls"][0]["tool"] == "get_weather"
    assert [request["tool"] for request in outcome.tools.requests] == ["get_weather"]
    assert offered(of_loop(outcome)[0])[20:] == offered(of_loop(asked)[-1])[20:] == ["find_tools", "get_weather"]
    assert outcome.stop_reason == "answered"


@each_strategy
def test_the_next_turn_knows_what_was_found(strategy: str) -> None:
    first = find_run([finds("weather"), ANSWER], strategy, extra_outputs="state")

    later = find_run([ANSWER], strategy, state=first.variables["state"], extra_outputs="state")
    without = find_run([ANSWER], strategy, state=later.variables["state"], tools=many(59, tool("find_weather")))

    assert offered(of_loop(later)[0])[20:] == ["find_tools", "get_weather"]
    assert offered(of_loop(without)[0])[20:] == ["find_tools"]


def test_each_subtask_offers_what_it_found_in_all_its_attempts() -> None:
    steps = [
        plans("One", "Two"),
        works_on("One", finds("weather")),
        works_on("Two", says("Two is done.")),
        completed("Two"),
        says("Nothing."),
        incomplete("One", "Ask for Rome."),
        advised("Ask for Rome.", asks()),
        says("Rain."),
        completed("One"),
        answers(),
    ]
    blueprint, _, _ = STRATEGIES["plan and reflect"]

    outcome = run(steps, HANDLERS, {"tools": many(), "parallel_tool_calls": 1}, blueprint=blueprint)

    check_growth(of_subtask(outcome, "One"))
    assert [offered(request)[20:] for request in of_subtask(outcome, "Two")] == [["find_tools"]]
    assert offered(of_subtask(outcome, "One")[-1])[20:] == ["find_tools", "get_weather"]
    assert outcome.tools.requests[0]["tool"] == "get_weather"
